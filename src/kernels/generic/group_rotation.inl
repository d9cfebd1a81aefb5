// Groups of kGroup numbers multiplied by the Hadamard matrix of that size, whose entries are 1 and -1:
// element i of the result is the sum over j of (-1)^(bits that i and j share) times element j. Its square is
// kGroup times the identity, so products of two rotated groups are kGroup times those of the groups
// themselves. One extreme number becomes kGroup moderate ones: 8 bits with one scale hold them better.
//
// Sums are built from pairs whose places differ in bit 0, then 1, and so on, whatever kLanes is, so that all
// tables get the same bits.

/// Adds to each element of one vector the one whose lane differs in bit `Bit`, or is subtracted from it.
template <int Bit>
V rotate_pairs(V v) {
  return [&]<std::size_t... lane>(std::index_sequence<lane...>) {
    alignas(64) static constexpr float kSigns[] = {((lane & Bit) == 0 ? 1.0f : -1.0f)...};
    return fma(v, load(kSigns), __builtin_shufflevector(v, v, (static_cast<int>(lane) ^ Bit)...));
  }
  (std::make_index_sequence<static_cast<std::size_t>(kLanes)>{});
}

template <int Bit = 1>
V rotate_lanes(V v) {
  if constexpr (Bit < kLanes) {
    return rotate_lanes<2 * Bit>(rotate_pairs<Bit>(v));
  } else {
    return v;
  }
}

/// The same with vectors in the place of lanes.
template <int Step = 1, std::size_t N>
void rotate_vectors(V (&v)[N]) {
  if constexpr (Step < static_cast<int>(N)) {
    QGEN_UNROLL
    for (int i = 0; i < static_cast<int>(N); ++i) {
      if ((i & Step) != 0) continue;
      const V sum = v[i] + v[i + Step];
      v[i + Step] = v[i] - v[i + Step];
      v[i] = sum;
    }
    rotate_vectors<2 * Step>(v);
  }
}

/// A group of X in its own order. Divided by kGroup, for that rotated weights are not: so it cannot overflow.
template <std::size_t N>
void rotate_input(V (&v)[N]) {
  static_assert(static_cast<std::int64_t>(N) * kLanes == kGroup);
  QGEN_UNROLL
  for (V& each : v) each = rotate_lanes(each * set(1.0f / kGroup));
  rotate_vectors(v);
}
