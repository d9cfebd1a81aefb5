// Multiplication by bf16 tiles (see tiles.inl) for W in panels of integers: the panels of a block of rows are
// unpacked to the order of B tiles.

inline std::size_t tile_integer_scratch(std::int64_t cols) noexcept {
  return static_cast<std::size_t>(tile_block_rows(cols) * round_up(cols, kBlockColumns) * Bf16::kBytes);
}

template <class W, class Rounding, class Tiles>
void tile_multiply_integers(Tiles& registers, const MatmulArgs& a) {
  const auto stride = static_cast<std::int64_t>(integer_panel_bytes<W>(a.cols));
  const std::int64_t unpacked = round_up(a.cols, W::kColumns) * kTileRows * Bf16::kBytes;
  const std::int64_t block = tile_block_rows(a.cols);
  registers.configure(full_tiles());
  for (std::int64_t row = 0; row < a.rows; row += block) {
    const std::byte* w = a.w + row / kTileRows * stride;
    const std::int64_t rows = std::min(block, a.rows - row);
    for (std::int64_t r = 0; r < rows; r += kTileRows) {
      unpack_columns<W, Rounding>(w + r / kTileRows * stride, a.cols, a.scratch + r / kTileRows * unpacked);
    }
    // Prefetching walks twice as many bytes as the next panels have, harmlessly.
    tile_block(registers, a, {a.scratch, unpacked, w + block / kTileRows * stride, stride}, row, rows);
  }
  registers.release();
}
