// Y[t, r] = sum over c of W[r, c] * X[t, c] for W in panels of integers (see panel_integer.inl) and many
// tokens; see panel_integer_few.inl for how an output is summed up. Some panels' part of kIntegerColumns
// columns stays in the first cache level and is multiplied by all tokens, which stream past it.

inline constexpr std::int64_t kIntegerColumns = 1024;
inline constexpr std::int64_t kIntegerRows = kBytePanels * kLanes;

/// Some columns of neighbouring panels times the same columns of a tile of X.
template <int Halves>
struct IntegerTile {
  const std::byte* w;
  std::int64_t panel_stride;  ///< bytes
  std::int64_t cols;
  const InputGroup<Halves>* x;
  float* y;
  std::int64_t y_stride;
  std::int64_t last_rows;  ///< rows of the last panel that Y has
  bool first;              ///< set Y rather than add to it
};

/// The same block of neighbouring panels.
template <class W, int Panels>
struct PanelBlocks {
  const std::byte* first;
  std::int64_t stride;
  typename W::Factors factors[static_cast<std::size_t>(Panels)];

  [[nodiscard]] const std::byte* at(int panel) const { return first + panel * stride; }
};

/// Fewer sums than a processor has products under way want those of both halves to grow at a time.
inline constexpr bool kChainedHalves = kBytePanels * kByteTokens >= 10;

template <class W, int Halves, int Tokens, int Panels>
using RunSums =
    RunSum<W, Halves, kChainedHalves>[static_cast<std::size_t>(Tokens)][static_cast<std::size_t>(Panels)];

/// Adds the products of a run of one group and one half of its X.
template <class W, int group, int run, int half, int Panels, int Tokens, int Halves>
void many_add_half(const PanelBlocks<W, Panels>& blocks, const InputGroup<Halves>* x,
                   RunSums<W, Halves, Tokens, Panels>& products) {
  constexpr int kRunVectors = kGroupVectors / W::kRuns;
  QGEN_UNROLL
  for (int i = run * kRunVectors; i < (run + 1) * kRunVectors; ++i) {
    IntegerRow<Panels> w;
    QGEN_UNROLL
    for (int p = 0; p < Panels; ++p) w[p] = W::weights(blocks.at(p), group, i);
    QGEN_UNROLL
    for (int t = 0; t < Tokens; ++t) {
      QGEN_UNROLL
      for (int p = 0; p < Panels; ++p) products[t][p].add(w[p], x[t].x[half] + 4 * i);
    }
  }
}

template <class W, int group, int run, int Panels, int Tokens, int Halves>
void many_add_run(const PanelBlocks<W, Panels>& blocks, const InputGroup<Halves>* x,
                  Grid<Tokens, Panels>& sums) {
  RunSums<W, Halves, Tokens, Panels> products;
  const auto for_each = [&](const auto& visit) {
    QGEN_UNROLL
    for (int t = 0; t < Tokens; ++t) {
      QGEN_UNROLL
      for (int p = 0; p < Panels; ++p) visit(products[t][p], start_of<W>(x[t], run), t, p);
    }
  };
  for_each([](auto& sum, std::int32_t start, int, int) { sum.begin(start); });
  many_add_half<W, group, run, 0, Panels, Tokens>(blocks, x, products);
  if constexpr (Halves == 2) {
    for_each([](auto& sum, std::int32_t start, int, int) { sum.go_on(start); });
    many_add_half<W, group, run, 1, Panels, Tokens>(blocks, x, products);
  }
  Row<Panels> scales;
  QGEN_UNROLL
  for (int p = 0; p < Panels; ++p) scales[p] = W::scale(blocks.at(p), blocks.factors[p], group, run);
  for_each([&](const auto& sum, std::int32_t start, int t, int p) {
    sums[t][p] = fma(sum.total(start), scales[p] * set(x[t].scale), sums[t][p]);
  });
}

template <class W, int group, int Panels, int Tokens, int Halves>
void many_add_group(const PanelBlocks<W, Panels>& blocks, const InputGroup<Halves>* x,
                    Grid<Tokens, Panels>& sums) {
  many_add_run<W, group, 0, Panels, Tokens>(blocks, x, sums);
  if constexpr (W::kRuns == 2) many_add_run<W, group, 1, Panels, Tokens>(blocks, x, sums);
  if constexpr (W::kHasMinimum) {
    QGEN_UNROLL
    for (int p = 0; p < Panels; ++p) {
      const V minimum = W::minimum(blocks.at(p), blocks.factors[p], group);
      QGEN_UNROLL
      for (int t = 0; t < Tokens; ++t) sums[t][p] = fma(minimum, set(x[t].sum), sums[t][p]);
    }
  }
}

/// Adds the products of a super-block.
template <class W, int Panels, int Tokens, int Halves>
void many_add_super_block(const std::byte* w, std::int64_t panel_stride, const InputGroup<Halves>* x,
                          Grid<Tokens, Panels>& sums) {
  PanelBlocks<W, Panels> blocks{w, panel_stride, {}};
  QGEN_UNROLL
  for (int p = 0; p < Panels; ++p) blocks.factors[p] = W::factors(w + p * panel_stride);
  for (std::int64_t b = 0; b < W::kBlocks; ++b) {
    many_add_group<W, 0, Panels, Tokens>(blocks, x, sums);
    many_add_group<W, 1, Panels, Tokens>(blocks, x + kByteTokens, sums);
    blocks.first += W::kBlockBytes;
    x += kBlockGroups * kByteTokens;
  }
}

template <class W, int Panels, int Tokens, int Halves>
void integer_many_tile(const IntegerTile<Halves>& a) {
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
  const std::byte* w = a.w;
  const InputGroup<Halves>* x = a.x;
  for (std::int64_t c = 0; c < a.cols; c += W::kColumns) {
    many_add_super_block<W, Panels, Tokens>(w, a.panel_stride, x, sums);
    w += W::kBytes;
    x += W::kColumns / kGroup * kByteTokens;
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
template <class W, int Halves>
void integer_many_block(const MatmulArgs& a, std::int64_t row, std::int64_t column) {
  const std::int64_t groups = input_groups(a.cols);
  const std::int64_t rows = std::min(kIntegerRows, a.rows - row), panels = round_up(rows, kLanes) / kLanes;
  const auto stride = static_cast<std::int64_t>(integer_panel_bytes<W>(a.cols));
  IntegerTile<Halves> tile{
      a.w + row / kLanes * stride + column / W::kColumns * W::kBytes,
      stride,
      std::min(kIntegerColumns, a.cols - column),
      reinterpret_cast<const InputGroup<Halves>*>(a.input) + column / kGroup * kByteTokens,
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

template <class W, int Halves>
void integer_many_multiply(const MatmulArgs& a) noexcept {
  for (std::int64_t row = 0; row < a.rows; row += kIntegerRows) {
    // At least once, so that Y is set where W has no columns.
    for (std::int64_t c = 0; c == 0 || c < a.cols; c += kIntegerColumns)
      integer_many_block<W, Halves>(a, row, c);
  }
}

template <class W, int Halves, bool Rotated>
constexpr MatmulKernel integer_many_kernel() {
  return {kByteTokens, integer_input_bytes<kByteTokens, Halves>, no_scratch_bytes,
          integer_prepare<kByteTokens, Halves, Rotated>, integer_many_multiply<W, Halves>};
}

/// `pack`: nothing where a type is made of stored blocks only.
template <class W>
constexpr PackedKernels integer_kernels(decltype(PackedKernels::pack) pack) {
  return {kLanes,
          integer_panel_bytes<W>,
          pack,
          integer_few_kernel<W, false>(),
          integer_many_kernel<W, 2, false>(),
          integer_many_kernel<W, W::kBulkHalves, false>()};
}

/// Rotated inputs lose so little that for very many tokens 8 bits are enough.
template <class W>
constexpr PackedKernels rotated_integer_kernels() {
  return {kLanes,
          integer_panel_bytes<W>,
          pack_integer_panel<W, true>,
          integer_few_kernel<W, true>(),
          integer_many_kernel<W, 2, true>(),
          integer_many_kernel<W, 1, true>()};
}
