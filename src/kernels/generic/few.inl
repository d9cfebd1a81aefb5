// Y[t, r] = sum over c of W[r, c] * X[t, c] for 1..16 tokens, W row-major as in the file, read once.
//
// An output is the sum, in order, of those of kFewColumns columns each; and each of those is kFewChains
// chains of multiply-adds, which take the vectors of columns in turn, added up chain by chain and then lane
// by lane. So it is the same whatever it is computed together with. A tile is one row, because memory likes a
// single stream, by at most kFewTile tokens, for which a vector of weights is loaded and widened once. X is
// kept as floats, rows padded with zeros to whole vectors.

/// Columns that are summed up apart, so that a tile of X stays in the first cache level.
inline constexpr std::int64_t kFewColumns = 1024;
/// Rows that are multiplied by one tile of X before the next, where not all of X stays in that level.
inline constexpr std::int64_t kFewRows = 64;
/// Bytes of X that do stay.
inline constexpr std::int64_t kFewResident = 24 * 1024;
/// How far ahead of the weights in use to prefetch, in bytes. The processor's own prefetching stops at page
/// borders.
inline constexpr std::int64_t kFewAhead = 8192;

inline std::size_t few_input_bytes(std::int64_t tokens, std::int64_t cols) noexcept {
  return static_cast<std::size_t>(tokens * round_up(cols, kLanes)) * sizeof(float);
}

inline std::size_t few_scratch_bytes(std::int64_t) noexcept {
  return 0;
}

inline void few_prepare(const float* x, std::int64_t x_stride, std::int64_t begin, std::int64_t end,
                        std::int64_t cols, std::byte* input) noexcept {
  const std::int64_t padded = round_up(cols, kLanes);
  for (std::int64_t t = begin; t < end; ++t) {
    float* out = reinterpret_cast<float*>(input) + t * padded;
    for (std::int64_t c = 0; c < cols; c += kLanes)
      store(out + c, load_up_to(x + t * x_stride + c, cols - c));
  }
}

/// Some columns of one row of W times the same columns of some tokens.
struct FewTile {
  const std::byte* w;
  std::int64_t ahead;  ///< bytes from w to what is wanted soon
  const float* x;
  std::int64_t x_stride;
  std::int64_t cols;
  float* y;
  std::int64_t y_stride;
  bool first;  ///< set Y rather than add to it
};

/// Adds the products of n columns from c on: kLanes, or fewer at the end of the row.
template <class W, int Tokens>
void few_add(const FewTile& a, std::int64_t c, std::int64_t n, Row<Tokens>& sums) {
  const V w = load_up_to<W>(a.w + c * W::kBytes, n);
  QGEN_UNROLL
  for (int t = 0; t < Tokens; ++t) sums[t] = fma(w, load(a.x + t * a.x_stride + c), sums[t]);
}

template <class W, int Tokens>
void few_tile(const FewTile& a) {
  // Vectors in a step of the main loop: whole cache lines, and every chain equally often.
  constexpr int kVectors = static_cast<int>(std::max<std::int64_t>(64 / (kLanes * W::kBytes), kFewChains));
  constexpr std::int64_t kStep = kVectors * kLanes;
  Grid<kFewChains, Tokens> sums = {};
  std::int64_t c = 0;
  for (; c + kStep <= a.cols; c += kStep) {
    QGEN_UNROLL
    for (std::int64_t line = 0; line < kStep * W::kBytes; line += 64) {
      __builtin_prefetch(a.w + a.ahead + c * W::kBytes + line);
    }
    QGEN_UNROLL
    for (int i = 0; i < kVectors; ++i) few_add<W, Tokens>(a, c + i * kLanes, kLanes, sums[i % kFewChains]);
  }
  QGEN_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const std::int64_t from = c + i * kLanes;
    if (from < a.cols) few_add<W, Tokens>(a, from, a.cols - from, sums[i % kFewChains]);
  }
  QGEN_UNROLL
  for (int t = 0; t < Tokens; ++t) {
    V chains = sums[0][t];
    QGEN_UNROLL
    for (int i = 1; i < kFewChains; ++i) chains = chains + sums[i][t];
    float& y = a.y[t * a.y_stride];
    y = a.first ? sum(chains) : y + sum(chains);
  }
}

/// Rows [begin, end) of W, columns [column, column + cols), for all tokens, cut into tiles of nearly equal
/// size.
template <class W>
void few_block(const MatmulArgs& a, std::int64_t begin, std::int64_t end, std::int64_t column,
               std::int64_t ahead) {
  const std::int64_t tiles = (a.tokens + kFewTile - 1) / kFewTile;
  const std::int64_t padded = round_up(a.cols, kLanes);
  for (std::int64_t i = 0; i < tiles; ++i) {
    const std::int64_t t = a.tokens * i / tiles;
    FewTile tile{a.w + begin * a.w_stride + column * W::kBytes,
                 ahead,
                 reinterpret_cast<const float*>(a.input) + t * padded + column,
                 padded,
                 std::min(kFewColumns, a.cols - column),
                 a.y + t * a.y_stride + begin,
                 a.y_stride,
                 column == 0};
    with_constant<kFewTile>(a.tokens * (i + 1) / tiles - t, [&](auto tokens) {
      for (std::int64_t row = begin; row < end; ++row, ++tile.y, tile.w += a.w_stride) {
        few_tile<W, decltype(tokens)::value>(tile);
      }
    });
  }
}

template <class W>
void few_multiply(const MatmulArgs& a) noexcept {
  const bool resident = a.tokens * a.cols * static_cast<std::int64_t>(sizeof(float)) <= kFewResident;
  const std::int64_t rows = resident ? 1 : kFewRows;
  const std::int64_t piece = std::clamp<std::int64_t>(a.cols, 1, kFewColumns) * W::kBytes;
  const std::int64_t ahead = resident ? kFewAhead : std::max<std::int64_t>(1, kFewAhead / piece) * a.w_stride;
  for (std::int64_t row = 0; row < a.rows; row += rows) {
    // At least once, so that Y is set where W has no columns.
    for (std::int64_t c = 0; c == 0 || c < a.cols; c += kFewColumns) {
      few_block<W>(a, row, std::min(row + rows, a.rows), c, ahead);
    }
  }
}

template <class W>
constexpr MatmulKernel few_kernel() {
  return {16, 1, few_input_bytes, few_scratch_bytes, few_prepare, few_multiply<W>};
}
