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
  /// Units in 32 bits of W.
  static constexpr std::int64_t kWordUnits = 4 / W::kBytes;
  /// Unit i of kWordUnits in every lane's 32 bits of W.
  template <int i>
  static V unit(V words) {
    return W::template column<i>(words);
  }
  /// Units from `columns` columns of X, of which there may be more than fill a vector.
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

/// Transposes the tokens of one tile: vectors of kLanes units of each token become vectors of tokens.
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
      // What a whole vector writes beyond its unit, the next unit overwrites; the last one has no next.
      const bool last = u + i + 1 == units;
      store_up_to(tile + (u + i) * kTileTokens, block[i], last ? kTileTokens : kLanes);
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

/// The next words of `rows` rows, of which `bytes` bytes are left; zeros beyond them and for further rows.
inline void load_words(const std::byte* w, std::int64_t stride, std::int64_t rows, std::int64_t bytes,
                       V (&words)[kLanes]) {
  if (rows == kLanes && bytes >= static_cast<std::int64_t>(sizeof(V))) {
    QGEN_UNROLL
    for (std::int64_t i = 0; i < kLanes; ++i) words[i] = load(w + i * stride);
    return;
  }
  for (std::int64_t i = 0; i < kLanes; ++i) words[i] = i < rows ? load_bytes(w + i * stride, bytes) : zero();
}

/// Packs `rows` rows (kLanes of them, the last ones zeros where there are fewer) from the block's columns:
/// vectors of 32-bit words of each row become, transposed, vectors of rows.
template <class P>
void pack_rows(const MatmulArgs& a, const ManyBlock& block, std::int64_t row, std::int64_t rows,
               float* panel) {
  const std::int64_t offset = block.unit * P::kUnitColumns * P::Weight::kBytes;
  const std::int64_t bytes = a.cols * P::Weight::kBytes - offset;
  const std::byte* w = a.w + row * a.w_stride + offset;
  for (std::int64_t u = 0; u < block.units; u += kLanes * P::kWordUnits) {
    V words[kLanes];
    load_words(w + u / P::kWordUnits * 4, a.w_stride, rows, bytes - u / P::kWordUnits * 4, words);
    transpose(words);
    const std::int64_t units = std::min(kLanes * P::kWordUnits, block.units - u);
    for (std::int64_t i = 0; i < units; i += P::kWordUnits) {
      float* to = panel + (u + i) * kPanelRows;
      store(to, P::template unit<0>(words[i / P::kWordUnits]));
      if constexpr (P::kWordUnits == 2) {
        if (i + 1 < units) store(to + kPanelRows, P::template unit<1>(words[i / 2]));
      }
    }
  }
}

template <class P>
void pack_block(const MatmulArgs& a, const ManyBlock& block, float* packed) {
  for (std::int64_t r = 0; r < round_up(block.rows, kPanelRows); r += kLanes) {
    float* panel = packed + r / kPanelRows * kPanelRows * block.units + r % kPanelRows;
    pack_rows<P>(a, block, block.row + r, std::clamp<std::int64_t>(block.rows - r, 0, kLanes), panel);
  }
}

/// Walks over lines of W that the next block needs, to bring them in while this one is multiplied.
struct NextLines {
  const std::byte* row;
  std::int64_t stride, bytes;
  std::int64_t at = 0;

  void prefetch() {
    __builtin_prefetch(row + at);
    at += 64;
    if (at >= bytes) at = 0, row += stride;
  }
};

/// A panel times a tile: adds to (or, at the first block of columns, sets) Y.
struct ManyTile {
  const float* panel;
  const float* x;
  std::int64_t units;
  float* y;
  std::int64_t y_stride;
  std::int64_t rows;
  bool first;
  NextLines next;
};

template <class P, int Tokens>
void many_tile(const ManyTile& a) {
  constexpr std::int64_t kLines =
      std::max<std::int64_t>(1, kPanelRows * P::kUnitColumns * P::Weight::kBytes / 64);
  NextLines next = a.next;
  Grid<Tokens, 2> sums = {};
  for (std::int64_t u = 0; u < a.units; ++u) {
    QGEN_UNROLL
    for (std::int64_t i = 0; i < kLines; ++i) next.prefetch();
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

/// Multiplies a packed block by all tokens.
template <class P>
void multiply_block(const MatmulArgs& a, const ManyBlock& block, const ManyBlock& next, const float* packed) {
  constexpr std::int64_t kUnitBytes = P::kUnitColumns * P::Weight::kBytes;
  for (std::int64_t t = 0; t < a.tokens; t += kTileTokens) {
    const float* x =
        reinterpret_cast<const float*>(a.input) + t * units_of<P>(a.cols) + block.unit * kTileTokens;
    for (std::int64_t r = 0; r < block.rows; r += kPanelRows) {
      const std::byte* soon = a.w + (next.row + r) * a.w_stride + next.unit * kUnitBytes;
      const ManyTile tile{packed + r * block.units,
                          x,
                          block.units,
                          a.y + t * a.y_stride + block.row + r,
                          a.y_stride,
                          block.rows - r,
                          block.unit == 0,
                          {soon, t == 0 ? a.w_stride : 0, next.units * kUnitBytes}};
      with_constant<kTileTokens>(std::min<std::int64_t>(kTileTokens, a.tokens - t),
                                 [&](auto tokens) { many_tile<P, decltype(tokens)::value>(tile); });
    }
  }
}

template <class P>
void many_multiply(const MatmulArgs& a) noexcept {
  const std::int64_t units = units_of<P>(a.cols);
  float* packed = reinterpret_cast<float*>(a.scratch);
  // Blocks of columns within blocks of rows; one at least, so that Y is set where W has no columns.
  const auto block_at = [&](std::int64_t row, std::int64_t unit) {
    return ManyBlock{row, std::min(kBlockPanels * kPanelRows, a.rows - row), unit,
                     std::min(kBlockUnits, units - unit)};
  };
  ManyBlock block = block_at(0, 0);
  while (block.rows > 0) {
    const bool row_ends = block.unit + kBlockUnits >= units;
    const ManyBlock next =
        row_ends ? block_at(block.row + block.rows, 0) : block_at(block.row, block.unit + kBlockUnits);
    pack_block<P>(a, block, packed);
    multiply_block<P>(a, block, next, packed);
    block = next;
  }
}

template <class P>
constexpr MatmulKernel many_kernel() {
  return {kPanelRows,      kTileTokens,     many_input_bytes<P>, many_scratch_bytes<P>,
          many_prepare<P>, many_multiply<P>};
}
