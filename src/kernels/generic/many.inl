// Y[t, r] = sum over c of W[r, c] * X[t, c] for many tokens.
//
// W is packed by blocks of kBlockUnits columns and kBlockPanels panels, into memory that stays in the second
// cache level, and multiplied there by all tokens. A panel is kPanelRows rows, [unit][row]: a vector holds
// one column of kLanes rows, so that sums need no folding. X lies in tiles of kTileTokens tokens,
// [unit][token]; a tile of sums takes vectors of a panel times broadcast values of X. A unit is the 32 bits
// that one lane multiplies at a time: a float, or where P says so several narrower columns.
//
// An output is one chain of multiply-adds for each block of columns in order, added up in Y in order; padding
// rows and units are zeros and go nowhere.

inline constexpr std::int64_t kPanelRows = 2 * kLanes;
inline constexpr std::int64_t kBlockPanels = 4;
inline constexpr std::int64_t kBlockUnits = 512;

/// Products in floats: a unit is one column.
template <class W>
struct FloatProduct {
  using Weight = W;
  static constexpr std::int64_t kUnitColumns = 1;
  /// Units from kLanes columns of W.
  static V load_units(const std::byte* w, std::int64_t columns) { return load_up_to<W>(w, columns); }
  /// Units from columns of X.
  static V load_input(const float* x, std::int64_t columns) { return load_up_to(x, columns); }
  static V multiply_add(V w, V x, V y) { return fma(w, x, y); }
};

template <class P>
std::int64_t units_of(std::int64_t cols) {
  return (cols + P::kUnitColumns - 1) / P::kUnitColumns;
}

template <class P>
std::size_t many_input_bytes(std::int64_t tokens, std::int64_t cols) noexcept {
  return static_cast<std::size_t>(round_up(tokens, kTileTokens) * units_of<P>(cols)) * sizeof(float);
}

template <class P>
std::size_t many_scratch_bytes(std::int64_t cols) noexcept {
  const std::int64_t units = std::min(units_of<P>(cols), kBlockUnits);
  return static_cast<std::size_t>(kBlockPanels * kPanelRows * units) * sizeof(float);
}

/// Transposes tokens [begin, end) of one tile: vectors of kLanes units of each token become vectors of
/// tokens.
template <class P>
void prepare_tile(const float* x, std::int64_t x_stride, std::int64_t tokens, std::int64_t cols,
                  float* tile) {
  const std::int64_t units = units_of<P>(cols);
  for (std::int64_t u = 0; u < units; u += kLanes) {
    V block[kLanes] = {};
    const std::int64_t c = u * P::kUnitColumns;
    for (std::int64_t t = 0; t < tokens; ++t) block[t] = P::load_input(x + t * x_stride + c, cols - c);
    transpose(block);
    for (std::int64_t i = 0; i < std::min(kLanes, units - u); ++i) {
      store_up_to(tile + (u + i) * kTileTokens, block[i], kTileTokens);
    }
  }
}

template <class P>
void many_prepare(const float* x, std::int64_t x_stride, std::int64_t begin, std::int64_t end,
                  std::int64_t cols, std::byte* input) noexcept {
  for (std::int64_t t = begin; t < end; t += kTileTokens) {
    prepare_tile<P>(x + t * x_stride, x_stride, std::min<std::int64_t>(kTileTokens, end - t), cols,
                    reinterpret_cast<float*>(input) + t * units_of<P>(cols));
  }
}

/// A block of W: rows [row, row + rows), units [unit, unit + units).
struct ManyBlock {
  std::int64_t row, rows, unit, units;
};

template <class P>
void pack_block(const MatmulArgs& a, const ManyBlock& block, float* packed) {
  for (std::int64_t r = 0; r < round_up(block.rows, kPanelRows); r += kLanes) {
    float* panel = packed + r / kPanelRows * kPanelRows * block.units + r % kPanelRows;
    const std::int64_t rows = std::clamp<std::int64_t>(block.rows - r, 0, kLanes);
    for (std::int64_t u = 0; u < block.units; u += kLanes) {
      V units[kLanes] = {};
      const std::int64_t c = (block.unit + u) * P::kUnitColumns;
      for (std::int64_t i = 0; i < rows; ++i) {
        const std::byte* w = a.w + (block.row + r + i) * a.w_stride + c * P::Weight::kBytes;
        units[i] = P::load_units(w, a.cols - c);
      }
      transpose(units);
      for (std::int64_t i = 0; i < std::min(kLanes, block.units - u); ++i) {
        store(panel + (u + i) * kPanelRows, units[i]);
      }
    }
  }
}

/// A panel times a tile: adds to (or, at the first block of columns, sets) Y.
struct ManyTile {
  const float* panel;
  const float* x;
  std::int64_t units;
  float* y;
  std::int64_t y_stride;
  std::int64_t rows;
  bool first;
};

template <class P, int Tokens>
void many_tile(const ManyTile& a) {
  Grid<Tokens, 2> sums = {};
  for (std::int64_t u = 0; u < a.units; ++u) {
    const V w0 = load(a.panel + u * kPanelRows);
    const V w1 = load(a.panel + u * kPanelRows + kLanes);
    QGEN_UNROLL
    for (int t = 0; t < Tokens; ++t) {
      const V x = set(a.x[u * kTileTokens + t]);
      sums[t][0] = P::multiply_add(w0, x, sums[t][0]);
      sums[t][1] = P::multiply_add(w1, x, sums[t][1]);
    }
  }
  QGEN_UNROLL
  for (int t = 0; t < Tokens; ++t) {
    QGEN_UNROLL
    for (int i = 0; i < 2; ++i) {
      const std::int64_t rows = a.rows - i * kLanes;
      if (rows <= 0) continue;
      float* y = a.y + t * a.y_stride + i * kLanes;
      store_up_to(y, a.first ? sums[t][i] : load_up_to(y, rows) + sums[t][i], rows);
    }
  }
}

template <class P>
void multiply_block(const MatmulArgs& a, const ManyBlock& block, const float* packed) {
  for (std::int64_t t = 0; t < a.tokens; t += kTileTokens) {
    const float* x =
        reinterpret_cast<const float*>(a.input) + t * units_of<P>(a.cols) + block.unit * kTileTokens;
    for (std::int64_t r = 0; r < block.rows; r += kPanelRows) {
      const ManyTile tile{packed + r * block.units,
                          x,
                          block.units,
                          a.y + t * a.y_stride + block.row + r,
                          a.y_stride,
                          block.rows - r,
                          block.unit == 0};
      with_constant<kTileTokens>(std::min<std::int64_t>(kTileTokens, a.tokens - t),
                                 [&](auto tokens) { many_tile<P, decltype(tokens)::value>(tile); });
    }
  }
}

template <class P>
void many_multiply(const MatmulArgs& a) noexcept {
  const std::int64_t units = units_of<P>(a.cols);
  float* packed = reinterpret_cast<float*>(a.scratch);
  for (std::int64_t r = 0; r < a.rows; r += kBlockPanels * kPanelRows) {
    // At least once, so that Y is set where W has no columns.
    for (std::int64_t u = 0; u == 0 || u < units; u += kBlockUnits) {
      const ManyBlock block{r, std::min(kBlockPanels * kPanelRows, a.rows - r), u,
                            std::min(kBlockUnits, units - u)};
      pack_block<P>(a, block, packed);
      multiply_block<P>(a, block, packed);
    }
  }
}

template <class P>
constexpr MatmulKernel many_kernel() {
  return {kPanelRows,      kTileTokens,     many_input_bytes<P>, many_scratch_bytes<P>,
          many_prepare<P>, many_multiply<P>};
}
