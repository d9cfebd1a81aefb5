// Y[t, r] = sum over c of W[r, c] * X[t, c] for W in panels of integers (see panel_integer.inl) and many
// tokens; see panel_integer_few.inl for how an output is summed up. Some panels' part of kIntegerColumns
// columns stays in the first cache level and is multiplied by all tokens, which stream past it.

inline constexpr std::int64_t kIntegerColumns = 1024;
inline constexpr std::int64_t kIntegerRows = kBytePanels * kLanes;

/// Some blocks of neighbouring panels times the same groups of a tile of X.
struct IntegerTile {
  const std::byte* w;
  std::int64_t panel_stride;  ///< bytes
  std::int64_t blocks;
  const InputGroup* x;
  float* y;
  std::int64_t y_stride;
  std::int64_t last_rows;  ///< rows of the last panel that Y has
  bool first;              ///< set Y rather than add to it
};

/// Adds the products of one group of a block and one half of its X.
template <class W, int group, int half, int Panels, int Tokens>
void many_add_half(const std::byte* block, std::int64_t panel_stride, const InputGroup* x,
                   Grid<Tokens, Panels>& sums) {
  using Products = typename W::Products;
  IntegerGrid<Tokens, Panels> products;
  QGEN_UNROLL
  for (int t = 0; t < Tokens; ++t) {
    QGEN_UNROLL
    for (int p = 0; p < Panels; ++p) products[t][p] = Products::begin(x[t].halves[half].start);
  }
  QGEN_UNROLL
  for (int i = 0; i < kGroupVectors; ++i) {
    IntegerRow<Panels> w;
    QGEN_UNROLL
    for (int p = 0; p < Panels; ++p) w[p] = W::weights(block + p * panel_stride, group, i);
    QGEN_UNROLL
    for (int t = 0; t < Tokens; ++t) {
      const I four = four_bytes(x[t].halves[half].x + 4 * i);
      QGEN_UNROLL
      for (int p = 0; p < Panels; ++p) products[t][p] = Products::add(products[t][p], w[p], four);
    }
  }
  Row<Panels> scales;
  QGEN_UNROLL
  for (int p = 0; p < Panels; ++p) scales[p] = W::scale(block + p * panel_stride, group);
  QGEN_UNROLL
  for (int t = 0; t < Tokens; ++t) {
    QGEN_UNROLL
    for (int p = 0; p < Panels; ++p) {
      const V total = to_float(Products::end(products[t][p], x[t].halves[half].start));
      sums[t][p] = fma(total, scales[p] * set(x[t].halves[half].scale), sums[t][p]);
    }
  }
}

template <class W, int Panels, int Tokens>
void integer_many_tile(const IntegerTile& a) {
  Grid<Tokens, Panels> sums = {};
  if (!a.first) {
    QGEN_UNROLL
    for (int t = 0; t < Tokens; ++t) {
      QGEN_UNROLL
      for (int p = 0; p < Panels; ++p) {
        sums[t][p] = load_up_to(a.y + t * a.y_stride + p * kLanes, p + 1 < Panels ? kLanes : a.last_rows);
      }
    }
  }
  const std::byte* block = a.w;
  const InputGroup* x = a.x;
  for (std::int64_t b = 0; b < a.blocks; ++b) {
    many_add_half<W, 0, 0, Panels, Tokens>(block, a.panel_stride, x, sums);
    many_add_half<W, 0, 1, Panels, Tokens>(block, a.panel_stride, x, sums);
    many_add_half<W, 1, 0, Panels, Tokens>(block, a.panel_stride, x + kByteTokens, sums);
    many_add_half<W, 1, 1, Panels, Tokens>(block, a.panel_stride, x + kByteTokens, sums);
    block += W::kBytes;
    x += kBlockGroups * kByteTokens;
  }
  QGEN_UNROLL
  for (int t = 0; t < Tokens; ++t) {
    QGEN_UNROLL
    for (int p = 0; p < Panels; ++p) {
      store_up_to(a.y + t * a.y_stride + p * kLanes, sums[t][p], p + 1 < Panels ? kLanes : a.last_rows);
    }
  }
}

/// kIntegerRows, at most, from `row` on and kIntegerColumns from `column` on for all tokens.
template <class W>
void integer_many_block(const MatmulArgs& a, std::int64_t row, std::int64_t column) {
  const std::int64_t groups = input_groups(a.cols);
  const std::int64_t rows = std::min(kIntegerRows, a.rows - row), panels = round_up(rows, kLanes) / kLanes;
  const auto stride = static_cast<std::int64_t>(integer_panel_bytes<W>(a.cols));
  IntegerTile tile{a.w + row / kLanes * stride + column / kBlockColumns * W::kBytes,
                   stride,
                   std::min(kIntegerColumns, groups * kGroup - column) / kBlockColumns,
                   reinterpret_cast<const InputGroup*>(a.input) + column / kGroup * kByteTokens,
                   a.y + row,
                   a.y_stride,
                   rows - (panels - 1) * kLanes,
                   column == 0};
  with_constant<kBytePanels>(panels, [&](auto count) {
    for (std::int64_t t = 0; t < a.tokens; t += kByteTokens) {
      with_constant<kByteTokens>(std::min<std::int64_t>(kByteTokens, a.tokens - t), [&](auto tokens) {
        integer_many_tile<W, decltype(count)::value, decltype(tokens)::value>(tile);
      });
      tile.x += kByteTokens * groups;
      tile.y += kByteTokens * a.y_stride;
    }
  });
}

template <class W>
void integer_many_multiply(const MatmulArgs& a) noexcept {
  for (std::int64_t row = 0; row < a.rows; row += kIntegerRows) {
    // At least once, so that Y is set where W has no columns.
    for (std::int64_t c = 0; c == 0 || c < a.cols; c += kIntegerColumns) integer_many_block<W>(a, row, c);
  }
}

template <class W>
constexpr PackedKernels integer_kernels() {
  const MatmulKernel many{kByteTokens, integer_input_bytes<kByteTokens>, no_scratch_bytes,
                          integer_prepare<W, kByteTokens>, integer_many_multiply<W>};
  return {kLanes, integer_panel_bytes<W>, pack_integer_panel<W>, integer_few_kernel<W>(), many, many};
}
