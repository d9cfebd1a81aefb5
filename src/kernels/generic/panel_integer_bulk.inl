// Y[t, r] = sum over c of W[r, c] * X[t, c] for W in panels of integers and many tokens, in the arithmetic of
// P: a block of W at a time is unpacked to panels of P's weights, which stay in the second cache level while
// all tokens are multiplied by them. Besides being faster than integers where the processor has no fast
// products of bytes, or multiplies bf16 at half their rate, since X needs two of them, this has no scales
// within.

template <class P>
std::size_t integer_bulk_scratch(std::int64_t) noexcept {
  return static_cast<std::size_t>(kManyRows * kManyColumns<P> * P::Weight::kBytes);
}

template <class P, class W>
void integer_bulk_multiply(const MatmulArgs& a) noexcept {
  static_assert(kManyColumns<P> % W::kColumns == 0);
  const auto stride = static_cast<std::int64_t>(integer_panel_bytes<W>(a.cols));
  for_each_block<P>(a, [&](const PanelBlock& block, const PanelBlock&) {
    const std::byte* w = a.w + block.row / kLanes * stride + block.column / W::kColumns * W::kBytes;
    const std::int64_t panel = round_up(block.cols, W::kColumns) * kLanes * P::Weight::kBytes;
    for (std::int64_t r = 0; r < block.rows; r += kLanes) {
      unpack_columns<W, P>(w + r / kLanes * stride, block.cols, a.scratch + r / kLanes * panel);
    }
    many_block<P>(a, block, {a.scratch, panel, a.scratch});
  });
}

template <class P, class W>
constexpr MatmulKernel integer_bulk_kernel() {
  return {kTileTokens, tiles_bytes<P>, integer_bulk_scratch<P>, prepare_tiles<P>,
          integer_bulk_multiply<P, W>};
}
