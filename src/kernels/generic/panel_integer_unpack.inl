// Panels of integers (see panel_integer.inl) as panels of bf16 (see panels.inl), for multiplication by many
// tokens in bf16: products of integers and scales are rounded to nearest.

/// Pairs of columns of one vector of a group, made by P: two vectors of 32-bit pairs.
template <class P>
void unpack_vector(I w, V scale, V offset, std::byte* to) {
  const V columns[4] = {
      fma(to_float(unsigned_byte<0>(w)), scale, offset), fma(to_float(unsigned_byte<1>(w)), scale, offset),
      fma(to_float(unsigned_byte<2>(w)), scale, offset), fma(to_float(unsigned_byte<3>(w)), scale, offset)};
  store(to, P::pair(columns[0], columns[1]));
  store(to + sizeof(V), P::pair(columns[2], columns[3]));
}

template <class W, class P>
void unpack_group(const std::byte* block, const typename W::Factors& factors, int group, std::byte* to) {
  static_assert(W::kBias > 0 || W::kHasMinimum, "bytes are read as unsigned");
  constexpr int kRunVectors = kGroupVectors / W::kRuns;
  for (int run = 0; run < W::kRuns; ++run) {
    const V scale = W::scale(block, factors, group, run);
    V offset = scale * set(static_cast<float>(-W::kBias));
    if constexpr (W::kHasMinimum) offset = W::minimum(block, factors, group);
    for (int i = run * kRunVectors; i < (run + 1) * kRunVectors; ++i, to += 2 * sizeof(V)) {
      unpack_vector<P>(W::weights(block, group, i), scale, offset, to);
    }
  }
}

/// The super-blocks of `cols` columns of one panel, each of which becomes W::kColumns * kLanes numbers.
template <class W, class P>
void unpack_columns(const std::byte* panel, std::int64_t cols, std::byte* to) {
  constexpr std::int64_t kGroupBytes = kGroup * kLanes * Bf16::kBytes;
  for (std::int64_t c = 0; c < cols; c += W::kColumns, panel += W::kBytes) {
    const auto factors = W::factors(panel);
    for (std::int64_t b = 0; b < W::kBlocks; ++b) {
      for (int group = 0; group < kBlockGroups; ++group, to += kGroupBytes) {
        unpack_group<W, P>(panel + b * W::kBlockBytes, factors, group, to);
      }
    }
  }
}
