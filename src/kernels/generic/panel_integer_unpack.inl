// Panels of integers (see panel_integer.inl) as panels of P's floats (see panels.inl), for multiplication by
// many tokens in the arithmetic of P. Floats hold products of integers and scales exactly, bf16 to nearest.

/// The four columns of one vector of a group.
template <class P, bool Signed>
void unpack_vector(I w, V scale, V offset, std::byte* to) {
  const V columns[4] = {fma(to_float(byte_of<0, Signed>(w)), scale, offset),
                        fma(to_float(byte_of<1, Signed>(w)), scale, offset),
                        fma(to_float(byte_of<2, Signed>(w)), scale, offset),
                        fma(to_float(byte_of<3, Signed>(w)), scale, offset)};
  P::store_pair(to, columns[0], columns[1]);
  P::store_pair(to + 2 * kLanes * P::Weight::kBytes, columns[2], columns[3]);
}

template <class W, class P>
void unpack_group(const std::byte* block, const typename W::Factors& factors, int group, std::byte* to) {
  constexpr int kRunVectors = kGroupVectors / W::kRuns;
  constexpr bool kSigned = W::kBias == 0 && !W::kHasMinimum;
  for (int run = 0; run < W::kRuns; ++run) {
    const V scale = W::scale(block, factors, group, run);
    V offset = scale * set(static_cast<float>(-W::kBias));
    if constexpr (W::kHasMinimum) offset = W::minimum(block, factors, group);
    for (int i = run * kRunVectors; i < (run + 1) * kRunVectors; ++i, to += 4 * kLanes * P::Weight::kBytes) {
      unpack_vector<P, kSigned>(W::weights(block, group, i), scale, offset, to);
    }
  }
}

/// The super-blocks of `cols` columns of one panel, each of which becomes W::kColumns * kLanes numbers.
template <class W, class P>
void unpack_columns(const std::byte* panel, std::int64_t cols, std::byte* to) {
  constexpr std::int64_t kGroupBytes = kGroup * kLanes * P::Weight::kBytes;
  for (std::int64_t c = 0; c < cols; c += W::kColumns, panel += W::kBytes) {
    const auto factors = W::factors(panel);
    for (std::int64_t b = 0; b < W::kBlocks; ++b) {
      for (int group = 0; group < kBlockGroups; ++group, to += kGroupBytes) {
        unpack_group<W, P>(panel + b * W::kBlockBytes, factors, group, to);
      }
    }
  }
}
