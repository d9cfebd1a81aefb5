// Y[t, r] = sum over c of W[r, c] * X[t, c] for W in panels of integers (see panel_integer.inl).
//
// X is rounded to 8 bits by groups, which lie in records of their own. For an output, a group's products are
// added as integers, starting from what makes up for a bias of the weights, and multiplied by both scales;
// groups are added up in order in one chain of multiply-adds. So an output does not depend on what it is
// computed together with.

/// A group of X.
struct InputGroup {
  std::byte x[kGroup];  ///< signed bytes
  float scale;
  std::int32_t start;  ///< minus the weights' bias times the sum of x
};

inline std::int64_t input_groups(std::int64_t cols) {
  return round_up(cols, kBlockColumns) / kGroup;
}

template <int TokenBlock>
std::size_t integer_input_bytes(std::int64_t tokens, std::int64_t cols) noexcept {
  return static_cast<std::size_t>(round_up(tokens, TokenBlock) * input_groups(cols)) * sizeof(InputGroup);
}

/// Rounds kGroup floats. Below 2^-100 they count as zeros: 127 / largest might be no float.
template <class W>
void prepare_group(const float* x, InputGroup& to) {
  constexpr int kVectors = static_cast<int>(kGroup / kLanes);
  V v[kVectors], most = zero(), bad = zero();
  QGEN_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    v[i] = load(x + i * kLanes);
    most = max(abs(v[i]), most);
    bad = fma(v[i], zero(), bad);  // NaN for what is not finite
  }
  if (!all_below(bad, 1.0f)) {
    to = {{}, std::numeric_limits<float>::quiet_NaN(), 0};
    return;
  }
  const float top = largest(most);
  const V inverse = set(top < 0x1p-100f ? 0.0f : 127.0f / top);
  V total = zero();
  QGEN_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const V rounded = round(v[i] * inverse);
    store_bytes(to.x + i * kLanes, rounded);
    total = total + rounded;
  }
  to.scale = top / 127.0f;
  to.start = -W::kBias * static_cast<std::int32_t>(sum(total));
}

/// Rounds a token to records that lie `stride` apart.
template <class W>
void prepare_token(const float* x, std::int64_t cols, std::int64_t stride, InputGroup* to) {
  const std::int64_t whole = cols / kGroup, all = input_groups(cols);
  for (std::int64_t g = 0; g < whole; ++g) prepare_group<W>(x + g * kGroup, to[g * stride]);
  for (std::int64_t g = whole; g < all; ++g) {
    float part[kGroup] = {};
    for (std::int64_t c = g * kGroup; c < cols; ++c) part[c - g * kGroup] = x[c];
    prepare_group<W>(part, to[g * stride]);
  }
}

/// Records lie in tiles of TokenBlock tokens, [group][token] within each.
template <class W, int TokenBlock>
void integer_prepare(const float* x, std::int64_t x_stride, std::int64_t begin, std::int64_t end,
                     std::int64_t cols, std::byte* input) noexcept {
  InputGroup* records = reinterpret_cast<InputGroup*>(input);
  for (std::int64_t t = begin; t < end; ++t) {
    InputGroup* tile = records + t / TokenBlock * TokenBlock * input_groups(cols);
    prepare_token<W>(x + t * x_stride, cols, TokenBlock, tile + t % TokenBlock);
  }
}

/// Some blocks of one panel times the same groups of some tokens.
struct IntegerTile {
  const std::byte* w;
  std::int64_t blocks;
  const InputGroup* x;
  std::int64_t group_stride, token_stride;  ///< records
  float* y;
  std::int64_t y_stride;
  std::int64_t rows;  ///< that Y has; the panel may have more
  bool first;         ///< set Y rather than add to it
};

template <class W, int group, int Tokens>
void add_group(const std::byte* block, const InputGroup* x, std::int64_t token_stride, Row<Tokens>& sums) {
  Quads w;
  W::template load<group>(block, w);
  const V scale = W::scale(block, group);
  QGEN_UNROLL
  for (int t = 0; t < Tokens; ++t) {
    const InputGroup& in = x[t * token_stride];
    const I products = W::dot(set_int(W::kBias == 0 ? 0 : in.start), w, in.x);
    sums[t] = fma(to_float(products), scale * set(in.scale), sums[t]);
  }
}

/// Ahead: how far ahead of the weights in use to prefetch, in bytes; 0: not.
template <class W, int Ahead, int Tokens>
void integer_tile(const IntegerTile& a) {
  Row<Tokens> sums = {};
  if (!a.first) {
    QGEN_UNROLL
    for (int t = 0; t < Tokens; ++t) sums[t] = load_up_to(a.y + t * a.y_stride, a.rows);
  }
  const InputGroup* x = a.x;
  for (std::int64_t b = 0; b < a.blocks; ++b) {
    const std::byte* block = a.w + b * W::kBytes;
    if constexpr (Ahead != 0) {
      QGEN_UNROLL
      for (std::int64_t line = 0; line < W::kBytes; line += 64) __builtin_prefetch(block + Ahead + line);
    }
    add_group<W, 0, Tokens>(block, x, a.token_stride, sums);
    x += a.group_stride;
    add_group<W, 1, Tokens>(block, x, a.token_stride, sums);
    x += a.group_stride;
  }
  QGEN_UNROLL
  for (int t = 0; t < Tokens; ++t) store_up_to(a.y + t * a.y_stride, sums[t], a.rows);
}

/// Panels stream through the registers, each multiplied by all tokens.
template <class W>
void integer_few_multiply(const MatmulArgs& a) noexcept {
  constexpr int kAhead = 4096;
  const std::int64_t groups = input_groups(a.cols);
  const std::byte* panel = a.w;
  for (std::int64_t row = 0; row < a.rows; row += kLanes) {
    for (std::int64_t t = 0; t < a.tokens; t += kByteTokens) {
      const IntegerTile tile{panel,
                             groups / kBlockGroups,
                             reinterpret_cast<const InputGroup*>(a.input) + t * groups,
                             1,
                             groups,
                             a.y + t * a.y_stride + row,
                             a.y_stride,
                             a.rows - row,
                             true};
      with_constant<kByteTokens>(std::min<std::int64_t>(kByteTokens, a.tokens - t), [&](auto tokens) {
        integer_tile<W, kAhead, decltype(tokens)::value>(tile);
      });
    }
    panel += integer_panel_bytes<W>(a.cols);
  }
}

/// Columns that are multiplied apart, so that a tile of X stays in the first cache level, and panels taken
/// together, so that their part of these columns stays in the second.
inline constexpr std::int64_t kIntegerColumns = 1024;
inline constexpr std::int64_t kIntegerRows = 128;

/// Rows [row, row + kIntegerRows), at most, and kIntegerColumns from `column` on, for all tokens.
template <class W>
void integer_many_block(const MatmulArgs& a, std::int64_t row, std::int64_t column) {
  const std::int64_t groups = input_groups(a.cols);
  const std::int64_t blocks =
      std::min(kIntegerColumns / kBlockColumns, (groups * kGroup - column) / kBlockColumns);
  const std::int64_t end = std::min(a.rows, row + kIntegerRows);
  for (std::int64_t t = 0; t < a.tokens; t += kByteTokens) {
    const InputGroup* x =
        reinterpret_cast<const InputGroup*>(a.input) + t * groups + column / kGroup * kByteTokens;
    for (std::int64_t r = row; r < end; r += kLanes) {
      const std::byte* panel = a.w + r / kLanes * static_cast<std::int64_t>(integer_panel_bytes<W>(a.cols));
      const IntegerTile tile{panel + column / kBlockColumns * W::kBytes,
                             blocks,
                             x,
                             kByteTokens,
                             1,
                             a.y + t * a.y_stride + r,
                             a.y_stride,
                             a.rows - r,
                             column == 0};
      with_constant<kByteTokens>(std::min<std::int64_t>(kByteTokens, a.tokens - t),
                                 [&](auto tokens) { integer_tile<W, 0, decltype(tokens)::value>(tile); });
    }
  }
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
  const MatmulKernel few{
      kLanes, 1, integer_input_bytes<1>, no_scratch_bytes, integer_prepare<W, 1>, integer_few_multiply<W>};
  const MatmulKernel many{kIntegerRows,
                          kByteTokens,
                          integer_input_bytes<kByteTokens>,
                          no_scratch_bytes,
                          integer_prepare<W, kByteTokens>,
                          integer_many_multiply<W>};
  return {kLanes, integer_panel_bytes<W>, pack_integer_panel<W>, few, many, many};
}
