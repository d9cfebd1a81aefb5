// Y[t, r] = sum over c of W[r, c] * X[t, c] for many tokens by bf16 tiles (AMX).
//
// An A tile is 16 tokens by 32 columns of X, rounded to bf16; a B tile 16 rows of W by 32 columns, as they
// lie in a panel of bf16 (see panels.inl); their product is added to a C tile of 16 tokens by 16 rows. Two A
// and two B tiles for four C tiles: each loaded tile is used twice. X lies [16 tokens][32 columns], a whole
// tile after the other.
//
// An output is one chain of sums of 32 products each. `Tiles` stands for the eight tile registers: those of
// the processor, or in tests a model of them.

/// Tokens or rows of a tile, its columns, its bytes.
inline constexpr std::int64_t kTileRows = 16;
inline constexpr std::int64_t kTileColumns = 32;
inline constexpr std::int64_t kTileBytes = kTileRows * kTileColumns * Bf16::kBytes;
/// Cache lines of two tiles.
inline constexpr std::int64_t kPairLines = 2 * kTileBytes / 64;
static_assert(kPanelColumns == kTileColumns);

/// Bytes of the tiles of 16 tokens or 16 rows, one after the other.
inline std::int64_t tile_row_bytes(std::int64_t cols) {
  return panel_columns(cols) / kTileColumns * kTileBytes;
}

inline std::size_t tile_input_bytes(std::int64_t tokens, std::int64_t cols) noexcept {
  return static_cast<std::size_t>(round_up(tokens, 2 * kTileRows) / kTileRows * tile_row_bytes(cols));
}

/// How inputs and unpacked weights are rounded, where the processor has no instruction for it.
struct TileRounding {
  using Weight = Bf16;
  static void store(void* to, V v) { Bf16::store(to, v); }
  static void store_pair(std::byte* to, V even, V odd) { Bf16::store_pair(to, even, odd); }
};

template <class Rounding, bool Rotated>
void tile_prepare(const float* x, std::int64_t x_stride, std::int64_t begin, std::int64_t end,
                  std::int64_t cols, std::byte* input) noexcept {
  constexpr std::int64_t kVectors = kTileColumns / kLanes;
  for (std::int64_t t = begin; t < round_up(end, 2 * kTileRows); ++t) {
    std::byte* row =
        input + t / kTileRows * tile_row_bytes(cols) + t % kTileRows * kTileColumns * Bf16::kBytes;
    for (std::int64_t c = 0; c < cols; c += kTileColumns, row += kTileBytes) {
      V values[kVectors];
      for (std::int64_t i = 0; i < kVectors; ++i) {
        const std::int64_t left = cols - c - i * kLanes;
        values[i] = t < end && left > 0 ? load_up_to(x + t * x_stride + cols - left, left) : zero();
      }
      if constexpr (Rotated) rotate_input(values);
      for (std::int64_t i = 0; i < kVectors; ++i) Rounding::store(row + i * kLanes * Bf16::kBytes, values[i]);
    }
  }
}

/// 32 tokens of X by 32 rows of W. Of both the second sixteen may be missing.
struct TileSquare {
  const std::byte* a;
  std::int64_t a_next;  ///< bytes from the tiles of the first sixteen tokens to those of the second
  const std::byte* b;
  std::int64_t b_next;  ///< the same for rows
  std::int64_t tiles;   ///< of 32 columns
  const std::byte* soon;
  std::int64_t soon_lines;  ///< cache lines to prefetch there, and at every second tile from there on
  float* y;
  std::int64_t y_stride, tokens, rows;
};

/// Writes tile C, which holds tokens from `token` on and rows from `row` on, as far as they are there.
template <int C, class Tiles>
void store_tile(Tiles& registers, const TileSquare& a, std::int64_t token, std::int64_t row) {
  const std::int64_t tokens = a.tokens - token, rows = std::min(kTileRows, a.rows - row);
  float* y = a.y + token * a.y_stride + row;
  if (tokens <= 0 || rows <= 0) return;
  if (tokens >= kTileRows && rows == kTileRows) {
    registers.template store<C>(y, a.y_stride * static_cast<std::int64_t>(sizeof(float)));
    return;
  }
  alignas(64) float whole[kTileRows * kTileRows];
  registers.template store<C>(whole, kTileRows * static_cast<std::int64_t>(sizeof(float)));
  for (std::int64_t t = 0; t < std::min(kTileRows, tokens); ++t) {
    std::copy_n(whole + t * kTileRows, rows, y + t * a.y_stride);
  }
}

/// C tiles 0..3 = A tiles 4, 5 times B tiles 6, 7.
template <class Tiles>
void tile_square(Tiles& registers, const TileSquare& a) {
  constexpr std::int64_t kStride = kTileColumns * Bf16::kBytes;
  registers.template zero<0>();
  registers.template zero<1>();
  registers.template zero<2>();
  registers.template zero<3>();
  for (std::int64_t i = 0; i < a.tiles; ++i) {
    registers.template load<6>(a.b + i * kTileBytes, kStride);
    registers.template load<4>(a.a + i * kTileBytes, kStride);
    registers.template multiply_add<0, 4, 6>();
    registers.template load<7>(a.b + a.b_next + i * kTileBytes, kStride);
    registers.template multiply_add<1, 4, 7>();
    registers.template load<5>(a.a + a.a_next + i * kTileBytes, kStride);
    registers.template multiply_add<2, 5, 6>();
    registers.template multiply_add<3, 5, 7>();
    for (std::int64_t line = 0; line < a.soon_lines; ++line) {
      __builtin_prefetch(a.soon + 2 * i * kTileBytes + line * 64, 0, 2);
    }
  }
  store_tile<0>(registers, a, 0, 0);
  store_tile<1>(registers, a, 0, kTileRows);
  store_tile<2>(registers, a, kTileRows, 0);
  store_tile<3>(registers, a, kTileRows, kTileRows);
}

/// Rows whose panels, as B tiles, take part of the second cache level while all tokens are multiplied by
/// them: X is read from beyond, where it is too large, once for all of them.
inline std::int64_t tile_block_rows(std::int64_t cols) {
  constexpr std::int64_t kBytes = 786432, kMostPairs = 4;
  const std::int64_t pair = 2 * std::max(tile_row_bytes(cols), kTileBytes);
  return 2 * kTileRows * std::clamp<std::int64_t>(kBytes / pair, 1, kMostPairs);
}

/// Neighbouring panels in the order of B tiles.
struct TilePanels {
  const std::byte* first;
  std::int64_t panel;     ///< bytes from one to the next
  const std::byte* soon;  ///< as many panels that will be wanted next
  std::int64_t soon_panel;
};

/// Multiplies the panels of `rows` rows of W from `row` on by all tokens. Meanwhile the next ones are brought
/// near, a share of every pair of tiles with each 32 tokens.
template <class Tiles>
void tile_block(Tiles& registers, const MatmulArgs& a, const TilePanels& panels, std::int64_t row,
                std::int64_t rows) {
  constexpr std::int64_t kTokens = 2 * kTileRows;
  const std::int64_t bytes = tile_row_bytes(a.cols);
  const std::int64_t squares = (a.tokens + kTokens - 1) / kTokens;
  for (std::int64_t i = 0; i < squares; ++i) {
    const std::int64_t t = i * kTokens;
    const std::int64_t line = kPairLines * i / squares;
    for (std::int64_t r = 0; r < rows; r += 2 * kTileRows) {
      const std::int64_t panel = r / kTileRows;
      tile_square(registers,
                  {a.input + t / kTileRows * bytes, bytes, panels.first + panel * panels.panel,
                   rows - r > kTileRows ? panels.panel : 0, bytes / kTileBytes,
                   panels.soon + panel * panels.soon_panel + line * 64, kPairLines * (i + 1) / squares - line,
                   a.y + t * a.y_stride + row + r, a.y_stride, a.tokens - t, rows - r});
    }
  }
}

template <class Tiles>
void tile_multiply(Tiles& registers, const MatmulArgs& a) {
  const std::int64_t bytes = tile_row_bytes(a.cols), block = tile_block_rows(a.cols);
  registers.configure(full_tiles());
  for (std::int64_t row = 0; row < a.rows; row += block) {
    const std::byte* w = a.w + row / kTileRows * bytes;
    tile_block(registers, a, {w, bytes, w + block / kTileRows * bytes, bytes}, row,
               std::min(block, a.rows - row));
  }
  registers.release();
}

/// As many products of tiles as `rounds` says, by four independent sums; returns how many operations those
/// were.
template <class Tiles>
double tile_probe(Tiles& registers, std::int64_t rounds) {
  registers.configure(full_tiles());
  registers.template zero<0>();
  registers.template zero<1>();
  registers.template zero<2>();
  registers.template zero<3>();
  registers.template zero<4>();
  registers.template zero<6>();
  for (std::int64_t i = 0; i < rounds; ++i) {
    registers.template multiply_add<0, 4, 6>();
    registers.template multiply_add<1, 4, 6>();
    registers.template multiply_add<2, 4, 6>();
    registers.template multiply_add<3, 4, 6>();
  }
  registers.release();
  return static_cast<double>(rounds) * 4 * 2 * kTileRows * kTileRows * kTileColumns;
}

/// Whether tiles give what they should for integers, whose products and sums are exact. All four squares of
/// tokens and rows and two tiles of columns take part.
template <class Tiles>
bool tiles_are_right(Tiles& registers) {
  constexpr std::int64_t kSize = 2 * kTileRows, kCols = 2 * kTileColumns;
  const auto weight = [](std::int64_t r, std::int64_t c) {
    return static_cast<float>((r * 7 + c * 3) % 9 - 4);
  };
  const auto value = [](std::int64_t t, std::int64_t c) {
    return static_cast<float>((t * 5 + c * 2) % 11 - 5);
  };
  alignas(64) std::uint16_t w[static_cast<std::size_t>(kSize * kCols)];
  alignas(64) std::byte input[static_cast<std::size_t>(kSize * kCols * Bf16::kBytes)];
  float x[static_cast<std::size_t>(kSize * kCols)], y[static_cast<std::size_t>(kSize * kSize)] = {};
  for (std::int64_t i = 0; i < kSize; ++i) {
    for (std::int64_t c = 0; c < kCols; ++c) {
      x[i * kCols + c] = value(i, c);
      const std::int64_t at =
          i / kTileRows * kTileRows * kCols + c / 2 * 2 * kTileRows + i % kTileRows * 2 + c % 2;
      w[at] = static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(weight(i, c)) >> 16);
    }
  }
  tile_prepare<TileRounding, false>(x, kCols, 0, kSize, kCols, input);
  MatmulArgs args;
  args.w = reinterpret_cast<const std::byte*>(w);
  args.rows = args.tokens = args.y_stride = kSize;
  args.cols = kCols;
  args.input = input;
  args.y = y;
  tile_multiply(registers, args);
  bool right = true;
  for (std::int64_t t = 0; t < kSize; ++t) {
    for (std::int64_t r = 0; r < kSize; ++r) {
      float sum = 0;
      for (std::int64_t c = 0; c < kCols; ++c) sum += weight(r, c) * value(t, c);
      right &= y[t * kSize + r] == sum;
    }
  }
  return right;
}
