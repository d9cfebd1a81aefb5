// Y[t, r] = sum over c of W[r, c] * X[t, c] for many tokens and W in panels of floats.
//
// X lies in tiles of kTileTokens tokens, [unit][token]: a unit is the 32 bits that one lane multiplies at a
// time, a float, or where P says so a pair of narrower columns. A register tile is two panels by a tile of
// tokens: vectors of weights times broadcast values of X. kManyUnits units of kManyRows rows stay in the
// second cache level while all tokens are multiplied by them, and a tile of X in the first.
//
// An output is one chain of multiply-adds for each kManyUnits units, added up in Y in order; padding columns
// are zeros.

inline constexpr std::int64_t kManyUnits = 512;
inline constexpr std::int64_t kManyRows = 8 * kLanes;

/// Products in floats.
template <class W>
struct FloatUnits {
  using Weight = W;
  /// Units in a pair of columns.
  static constexpr int kPairUnits = 2;
  /// Unit i of a pair.
  static V load_unit(const std::byte* w, int i) { return W::load_of_pair(w, i); }
  static void store_pair(std::byte* to, V even, V odd) { W::store_pair(to, even, odd); }
  /// Units from `columns` columns of X, of which there may be more than fill a vector.
  static V load_input(const float* x, std::int64_t columns) { return load_up_to(x, columns); }
  static V multiply_add(V w, V x, V y) { return fma(w, x, y); }
};

/// Units in the columns of a panel.
template <class P>
std::int64_t panel_units(std::int64_t cols) {
  return panel_columns(cols) / 2 * P::kPairUnits;
}

template <class P>
std::size_t tiles_bytes(std::int64_t tokens, std::int64_t cols) noexcept {
  return static_cast<std::size_t>(round_up(tokens, kTileTokens) * panel_units<P>(cols)) * sizeof(float);
}

/// Transposes the tokens of one tile: vectors of kLanes units of each token become vectors of tokens.
template <class P>
void prepare_token_tile(const float* x, std::int64_t x_stride, std::int64_t tokens, std::int64_t cols,
                        float* tile) {
  static_assert(kTileTokens <= kLanes && kLanes <= 2 * kTileTokens,
                "the last unit but one stays in the tile");
  const std::int64_t units = panel_units<P>(cols);
  for (std::int64_t u = 0; u < units; u += kLanes) {
    V block[kLanes] = {};
    const std::int64_t c = u * 2 / P::kPairUnits;
    for (std::int64_t t = 0; t < tokens && c < cols; ++t) {
      block[t] = P::load_input(x + t * x_stride + c, cols - c);
    }
    transpose(block);
    for (std::int64_t i = 0; i < kLanes; ++i) {
      // What a whole vector writes beyond its unit, the next unit overwrites; the last one has no next.
      const bool last = u + i + 1 == units;
      store_up_to(tile + (u + i) * kTileTokens, block[i], last ? kTileTokens : kLanes);
    }
  }
}

template <class P>
void prepare_tiles(const float* x, std::int64_t x_stride, std::int64_t begin, std::int64_t end,
                   std::int64_t cols, std::byte* input) noexcept {
  for (std::int64_t t = begin; t < end; t += kTileTokens) {
    prepare_token_tile<P>(x + t * x_stride, x_stride, std::min<std::int64_t>(kTileTokens, end - t), cols,
                          reinterpret_cast<float*>(input) + t * panel_units<P>(cols));
  }
}

/// A register tile: some columns of two panels times the same columns of a tile of tokens.
struct ManyPass {
  const std::byte* w;
  std::int64_t panel;     ///< bytes from the first panel to the second; 0 where there is only one
  const std::byte* soon;  ///< the same columns of the two panels that will be wanted next
  const float* x;
  std::int64_t cols;
  float* y;
  std::int64_t y_stride, rows;
  bool first;  ///< set Y rather than add to it
};

template <class P, int Tokens>
void many_pass(const ManyPass& a) {
  constexpr std::int64_t kPairBytes = 2 * kLanes * P::Weight::kBytes;
  Grid<Tokens, 2> sums = {};
  for (std::int64_t pair = 0; pair < a.cols / 2; ++pair) {
    const std::byte* w = a.w + pair * kPairBytes;
    const float* x = a.x + pair * P::kPairUnits * kTileTokens;
    QGEN_UNROLL
    for (std::int64_t line = 0; line < kPairBytes; line += 64) {
      __builtin_prefetch(a.soon + pair * kPairBytes + line);
      __builtin_prefetch(a.soon + a.panel + pair * kPairBytes + line);
    }
    QGEN_UNROLL
    for (int i = 0; i < P::kPairUnits; ++i) {
      const V w0 = P::load_unit(w, i), w1 = P::load_unit(w + a.panel, i);
      QGEN_UNROLL
      for (int t = 0; t < Tokens; ++t) {
        const V value = set(x[i * kTileTokens + t]);
        sums[t][0] = P::multiply_add(w0, value, sums[t][0]);
        sums[t][1] = P::multiply_add(w1, value, sums[t][1]);
      }
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

/// A block of W: rows [row, row + rows), columns [column, column + cols).
struct PanelBlock {
  std::int64_t row, rows, column, cols;
};

/// Where the panels of a block lie.
struct BlockPanels {
  const std::byte* w;     ///< the block's first columns of its first panel
  std::int64_t panel;     ///< bytes from panel to panel
  const std::byte* soon;  ///< what will be wanted next, in the same order
};

/// Multiplies a block by all tokens.
template <class P>
void many_block(const MatmulArgs& a, const PanelBlock& block, const BlockPanels& panels) {
  for (std::int64_t t = 0; t < a.tokens; t += kTileTokens) {
    const float* x = reinterpret_cast<const float*>(a.input) + t * panel_units<P>(a.cols) +
                     block.column / 2 * P::kPairUnits * kTileTokens;
    for (std::int64_t r = 0; r < block.rows; r += 2 * kLanes) {
      const std::int64_t offset = r / kLanes * panels.panel;
      const ManyPass pass{panels.w + offset,
                          block.rows - r > kLanes ? panels.panel : 0,
                          (t == 0 ? panels.soon : panels.w) + offset,
                          x,
                          block.cols,
                          a.y + t * a.y_stride + block.row + r,
                          a.y_stride,
                          block.rows - r,
                          block.column == 0};
      with_constant<kTileTokens>(std::min<std::int64_t>(kTileTokens, a.tokens - t),
                                 [&](auto tokens) { many_pass<P, decltype(tokens)::value>(pass); });
    }
  }
}

/// Columns in a block.
template <class P>
inline constexpr std::int64_t kManyColumns = kManyUnits * 2 / P::kPairUnits;

/// Calls visit(block, next) for the blocks of columns within blocks of rows: one at least, so that Y is set
/// where W has no columns.
template <class P, class Visit>
void for_each_block(const MatmulArgs& a, const Visit& visit) {
  constexpr std::int64_t kColumns = kManyColumns<P>;
  const std::int64_t padded = panel_columns(a.cols);
  const auto block_at = [&](std::int64_t row, std::int64_t column) {
    return PanelBlock{row, std::min(kManyRows, a.rows - row), column, std::min(kColumns, padded - column)};
  };
  PanelBlock block = block_at(0, 0);
  while (block.rows > 0) {
    const bool row_ends = block.column + kColumns >= padded;
    const PanelBlock next =
        row_ends ? block_at(block.row + block.rows, 0) : block_at(block.row, block.column + kColumns);
    visit(block, next);
    block = next;
  }
}

template <class P>
void many_multiply_panels(const MatmulArgs& a) noexcept {
  using W = typename P::Weight;
  const auto panel = static_cast<std::int64_t>(panel_bytes<W>(a.cols));
  const auto at = [&](const PanelBlock& block) {
    return a.w + block.row / kLanes * panel + block.column * kLanes * W::kBytes;
  };
  for_each_block<P>(a, [&](const PanelBlock& block, const PanelBlock& next) {
    many_block<P>(a, block, {at(block), panel, at(next)});
  });
}

template <class P>
constexpr MatmulKernel many_panel_kernel() {
  return {kTileTokens, tiles_bytes<P>, no_scratch_bytes, prepare_tiles<P>, many_multiply_panels<P>};
}

/// Weights of one float type.
template <class W>
constexpr PackedKernels float_panels() {
  constexpr MatmulKernel kMany = many_panel_kernel<FloatUnits<W>>();
  return {kLanes, panel_bytes<W>, pack_panel<W>, few_panel_kernel<W>(), kMany, kMany};
}
