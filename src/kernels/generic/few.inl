// Y[t, r] = sum over c of W[r, c] * X[t, c] for 1..16 tokens, W row-major as in the file, read once.
//
// An output is one chain of fused multiply-adds over vectors of kLanes columns in order, then the sum over
// the lanes; so it is the same whatever the tile it was computed in. Several rows and tokens at a time give
// the independent chains that hide the latency, and let one widened vector of weights serve several tokens.
// X is kept as floats, rows padded with zeros to whole vectors.

/// Columns of a tile's rows that one pass of its main loop takes: a cache line of weights.
template <class W>
inline constexpr std::int64_t kFewStep = 64 / W::kBytes;

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

/// What a tile reads and writes.
struct FewTile {
  const std::byte* w;
  std::int64_t w_stride;
  const float* x;
  std::int64_t x_stride;
  std::int64_t cols;
  float* y;
  std::int64_t y_stride;
};

/// Adds the products of n columns from c on: kLanes, or fewer at the end of the rows.
template <class W, int Rows, int Tokens>
void few_add(const FewTile& a, std::int64_t c, std::int64_t n, Grid<Tokens, Rows>& sums) {
  Row<Tokens> x;
  QGEN_UNROLL
  for (int t = 0; t < Tokens; ++t) x[t] = load(a.x + t * a.x_stride + c);
  QGEN_UNROLL
  for (int r = 0; r < Rows; ++r) {
    const V w = load_up_to<W>(a.w + r * a.w_stride + c * W::kBytes, n);
    QGEN_UNROLL
    for (int t = 0; t < Tokens; ++t) sums[t][r] = fma(w, x[t], sums[t][r]);
  }
}

template <class W, int Rows, int Tokens>
void few_tile(const FewTile& a) {
  Grid<Tokens, Rows> sums = {};
  std::int64_t c = 0;
  for (; c + kFewStep<W> <= a.cols; c += kFewStep<W>) {
    QGEN_UNROLL
    for (int r = 0; r < Rows; ++r) __builtin_prefetch(a.w + (r + Rows) * a.w_stride + c * W::kBytes);
    QGEN_UNROLL
    for (std::int64_t i = 0; i < kFewStep<W>; i += kLanes) few_add<W, Rows, Tokens>(a, c + i, kLanes, sums);
  }
  for (; c < a.cols; c += kLanes) few_add<W, Rows, Tokens>(a, c, a.cols - c, sums);
  QGEN_UNROLL
  for (int t = 0; t < Tokens; ++t) {
    QGEN_UNROLL
    for (int r = 0; r < Rows; ++r) a.y[t * a.y_stride + r] = sum(sums[t][r]);
  }
}

/// Rows [row, row + Rows) for all tokens, which are cut into tiles of nearly equal size.
template <class W, int Rows>
void few_rows(const MatmulArgs& a, std::int64_t row) {
  const std::int64_t tiles = (a.tokens + kFewTile - 1) / kFewTile;
  const std::int64_t padded = round_up(a.cols, kLanes);
  for (std::int64_t i = 0; i < tiles; ++i) {
    const std::int64_t t = a.tokens * i / tiles;
    const FewTile tile{a.w + row * a.w_stride,
                       a.w_stride,
                       reinterpret_cast<const float*>(a.input) + t * padded,
                       padded,
                       a.cols,
                       a.y + t * a.y_stride + row,
                       a.y_stride};
    with_constant<Rows == 8 ? kFewWide : kFewTile>(a.tokens * (i + 1) / tiles - t, [&](auto tokens) {
      few_tile<W, Rows, decltype(tokens)::value>(tile);
    });
  }
}

template <class W>
void few_multiply(const MatmulArgs& a) noexcept {
  std::int64_t row = 0;
  if (a.tokens <= kFewWide) {
    for (; row + 8 <= a.rows; row += 8) few_rows<W, 8>(a, row);
  }
  for (; row + 4 <= a.rows; row += 4) few_rows<W, 4>(a, row);
  for (; row < a.rows; ++row) few_rows<W, 1>(a, row);
}

template <class W>
constexpr MatmulKernel few_kernel() {
  return {8, 1, few_input_bytes, few_scratch_bytes, few_prepare, few_multiply<W>};
}
