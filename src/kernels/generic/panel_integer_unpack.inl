// Panels of integers (see panel_integer.inl) as panels of bf16 (see panels.inl), for multiplication by many
// tokens in bf16: products of integers and scales are rounded to nearest.

/// Pairs of columns of one vector of a group, made by P: two vectors of 32-bit pairs.
template <class W, class P>
void unpack_vector(I w, V scale, std::byte* to) {
  static_assert(W::kBias > 0, "bytes are read as unsigned");
  const V offset = scale * set(static_cast<float>(-W::kBias));
  const V columns[4] = {
      fma(to_float(unsigned_byte<0>(w)), scale, offset), fma(to_float(unsigned_byte<1>(w)), scale, offset),
      fma(to_float(unsigned_byte<2>(w)), scale, offset), fma(to_float(unsigned_byte<3>(w)), scale, offset)};
  store(to, P::pair(columns[0], columns[1]));
  store(to + sizeof(V), P::pair(columns[2], columns[3]));
}

/// `blocks` blocks of one panel, each of which becomes kBlockColumns * kLanes numbers.
template <class W, class P>
void unpack_blocks(const std::byte* block, std::int64_t blocks, std::byte* to) {
  for (std::int64_t b = 0; b < blocks; ++b, block += W::kBytes) {
    for (int group = 0; group < kBlockGroups; ++group) {
      const V scale = W::scale(block, group);
      for (int i = 0; i < kGroupVectors; ++i, to += 2 * sizeof(V)) {
        unpack_vector<W, P>(W::weights(block, group, i), scale, to);
      }
    }
  }
}
