// Y[t, r] = sum over c of W[r, c] * X[t, c] for 1..16 tokens and W in panels of floats, read once and in
// order: memory likes a single stream.
//
// An output is kFewChains chains of multiply-adds, which take the columns in turn, added up in order; so it
// is the same whatever it is computed together with. A weight is loaded and widened once for at most kFewTile
// tokens. X is kept as floats, rows padded with zeros to kPanelColumns.

/// Columns that one tile of tokens after the other is multiplied by while they lie in the first cache level.
inline constexpr std::int64_t kFewBlock = 512;
/// How far ahead of the weights in use to prefetch, in bytes: the more there is to do for each, the less the
/// processor sees of those to come, and its own prefetching stops at page borders.
inline std::int64_t few_prefetch(std::int64_t tokens) {
  return 4096 + 2048 * std::min<std::int64_t>(tokens, 4);
}

/// Floats from token to token: a cache line more than the columns, so that tokens do not fall into the same
/// sets of the cache.
inline std::int64_t row_floats(std::int64_t cols) {
  return panel_columns(cols) + 16;
}

inline std::size_t rows_bytes(std::int64_t tokens, std::int64_t cols) noexcept {
  return static_cast<std::size_t>(tokens * row_floats(cols)) * sizeof(float);
}

inline void prepare_rows(const float* x, std::int64_t x_stride, std::int64_t begin, std::int64_t end,
                         std::int64_t cols, std::byte* input) noexcept {
  for (std::int64_t t = begin; t < end; ++t) {
    float* row = reinterpret_cast<float*>(input) + t * row_floats(cols);
    std::copy_n(x + t * x_stride, cols, row);
    std::fill(row + cols, row + row_floats(cols), 0.0f);
  }
}

/// The chains of one output vector.
using Chains = V[kFewChains];

/// Some columns of one panel times the same columns of some tokens.
struct FewPass {
  const std::byte* w;
  std::int64_t ahead;  ///< bytes from w to what is wanted soon
  const float* x;
  std::int64_t x_stride, cols;
};

template <class W, int Tokens>
void few_pass(const FewPass& a, Chains* chains) {
  // Columns in a step of the loop: whole cache lines, and every chain equally often.
  constexpr std::int64_t kColumnBytes = kLanes * W::kBytes;
  constexpr std::int64_t kStep = std::max<std::int64_t>({64 / kColumnBytes, kFewChains, 2});
  static_assert(kPanelColumns % kStep == 0);
  Grid<Tokens, kFewChains> sums;
  QGEN_UNROLL
  for (int t = 0; t < Tokens; ++t) std::copy_n(chains[t], kFewChains, sums[t]);
  for (std::int64_t c = 0; c < a.cols; c += kStep) {
    const std::byte* w = a.w + c * kColumnBytes;
    QGEN_UNROLL
    for (std::int64_t line = 0; line < kStep * kColumnBytes; line += 64) {
      __builtin_prefetch(w + a.ahead + line, 0, kWeightLocality);
    }
    QGEN_UNROLL
    for (std::int64_t i = 0; i < kStep; i += 2) {
      const V w0 = W::load_of_pair(w + i * kColumnBytes, 0), w1 = W::load_of_pair(w + i * kColumnBytes, 1);
      QGEN_UNROLL
      for (int t = 0; t < Tokens; ++t) {
        const float* x = a.x + t * a.x_stride + c + i;
        V* even = &sums[t][i % kFewChains];
        even[0] = fma(w0, set(x[0]), even[0]);
        even[1] = fma(w1, set(x[1]), even[1]);
      }
    }
  }
  QGEN_UNROLL
  for (int t = 0; t < Tokens; ++t) std::copy_n(sums[t], kFewChains, chains[t]);
}

/// Adds the products of columns [column, column + cols) of one panel for all tokens, cut into tiles of nearly
/// equal size.
template <class W>
void few_columns(const MatmulArgs& a, const std::byte* panel, std::int64_t column, std::int64_t cols,
                 Chains* chains) {
  const std::int64_t tiles = (a.tokens + kFewTile - 1) / kFewTile;
  const std::int64_t stride = row_floats(a.cols);
  for (std::int64_t i = 0; i < tiles; ++i) {
    const std::int64_t t = a.tokens * i / tiles;
    // The first tile brings the weights for the others.
    const FewPass pass{panel + column * kLanes * W::kBytes, i == 0 ? few_prefetch(a.tokens) : 0,
                       reinterpret_cast<const float*>(a.input) + t * stride + column, stride, cols};
    with_constant<kFewTile>(a.tokens * (i + 1) / tiles - t,
                            [&](auto tokens) { few_pass<W, decltype(tokens)::value>(pass, chains + t); });
  }
}

template <class W>
void few_multiply_panels(const MatmulArgs& a) noexcept {
  const std::int64_t padded = panel_columns(a.cols);
  const std::int64_t block = a.tokens <= kFewTile ? padded : kFewBlock;
  for (std::int64_t row = 0; row < a.rows; row += kLanes) {
    Chains chains[kFewTokens];
    for (std::int64_t t = 0; t < a.tokens; ++t) std::fill_n(chains[t], kFewChains, zero());
    const std::byte* panel = a.w + row * padded * W::kBytes;
    for (std::int64_t c = 0; c < padded; c += block) {
      few_columns<W>(a, panel, c, std::min(block, padded - c), chains);
    }
    for (std::int64_t t = 0; t < a.tokens; ++t) {
      V sum = chains[t][0];
      QGEN_UNROLL
      for (int i = 1; i < kFewChains; ++i) sum = sum + chains[t][i];
      store_up_to(a.y + t * a.y_stride + row, sum, a.rows - row);
    }
  }
}

template <class W>
constexpr MatmulKernel few_panel_kernel() {
  return {1, rows_bytes, no_scratch_bytes, prepare_rows, few_multiply_panels<W>};
}
