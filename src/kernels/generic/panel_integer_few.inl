// Y[t, r] = sum over c of W[r, c] * X[t, c] for W in panels of integers (see panel_integer.inl) and a few
// tokens: panels stream through the registers once.
//
// For an output, here and for many tokens, the products of a run (of columns with one scale) are added as
// integers, those with the upper bytes of X first, and what makes up for a bias of the weights, and
// multiplied by both scales; runs, minima and groups are added up in order in one chain of multiply-adds. So
// an output does not depend on what it is computed together with.

/// How far ahead of the weights in use to prefetch, in bytes.
inline constexpr std::int64_t kPanelAhead = 8192;

/// Adds the products of one group of a block. Its weights stay in registers, so that all of them are asked
/// for at once and early.
template <class W, int group, int Tokens>
void integer_few_group(const std::byte* block, const typename W::Factors& factors, const InputGroup<2>* x,
                       Row<Tokens>& sums) {
  constexpr int kRunVectors = kGroupVectors / W::kRuns;
  Quads w;
  QGEN_UNROLL
  for (int i = 0; i < kGroupVectors; ++i) w[i] = W::weights(block, group, i);
  QGEN_UNROLL
  for (int run = 0; run < W::kRuns; ++run) {
    const V scale = W::scale(block, factors, group, run);
    QGEN_UNROLL
    for (int t = 0; t < Tokens; ++t) {
      const std::int32_t start = start_of<W>(x[t], run);
      RunSum<W, 2, false> products;
      products.begin(start);
      QGEN_UNROLL
      for (int half = 0; half < 2; ++half) {
        if (half == 1) products.go_on(start);
        QGEN_UNROLL
        for (int i = run * kRunVectors; i < (run + 1) * kRunVectors; ++i)
          products.add(w[i], x[t].x[half] + 4 * i);
      }
      sums[t] = fma(products.total(start), scale * set(x[t].scale), sums[t]);
    }
  }
  if constexpr (W::kHasMinimum) {
    const V minimum = W::minimum(block, factors, group);
    QGEN_UNROLL
    for (int t = 0; t < Tokens; ++t) sums[t] = fma(minimum, set(x[t].sum), sums[t]);
  }
}

/// A panel times a tile of X, for `rows` rows of Y.
template <class W, int Tokens>
void integer_few_panel(const std::byte* panel, const InputGroup<2>* x, std::int64_t cols, float* y,
                       std::int64_t y_stride, std::int64_t rows) {
  Row<Tokens> sums = {};
  for (std::int64_t c = 0; c < cols; c += W::kColumns) {
    const auto factors = W::factors(panel);
    for (std::int64_t b = 0; b < W::kBlocks; ++b) {
      QGEN_UNROLL
      for (std::int64_t line = 0; line < W::kBlockBytes; line += 64)
        __builtin_prefetch(panel + kPanelAhead + line, 0, kWeightLocality);
      integer_few_group<W, 0, Tokens>(panel, factors, x, sums);
      integer_few_group<W, 1, Tokens>(panel, factors, x + kByteFewTokens, sums);
      panel += W::kBlockBytes;
      x += kBlockGroups * kByteFewTokens;
    }
    panel += W::kBytes - W::kBlocks * W::kBlockBytes;
  }
  QGEN_UNROLL
  for (int t = 0; t < Tokens; ++t) store_up_to(y + t * y_stride, sums[t], rows);
}

template <class W>
void integer_few_multiply(const MatmulArgs& a) noexcept {
  const std::int64_t groups = input_groups(a.cols);
  const std::byte* panel = a.w;
  for (std::int64_t row = 0; row < a.rows; row += kLanes) {
    for (std::int64_t t = 0; t < a.tokens; t += kByteFewTokens) {
      const InputGroup<2>* x = reinterpret_cast<const InputGroup<2>*>(a.input) + t * groups;
      with_constant<kByteFewTokens>(std::min<std::int64_t>(kByteFewTokens, a.tokens - t), [&](auto tokens) {
        integer_few_panel<W, decltype(tokens)::value>(panel, x, a.cols, a.y + t * a.y_stride + row,
                                                      a.y_stride, a.rows - row);
      });
    }
    panel += integer_panel_bytes<W>(a.cols);
  }
}

template <class W, bool Rotated>
constexpr MatmulKernel integer_few_kernel() {
  return {kByteFewTokens, integer_input_bytes<kByteFewTokens, 2>, no_scratch_bytes,
          integer_prepare<kByteFewTokens, 2, Rotated>, integer_few_multiply<W>};
}
