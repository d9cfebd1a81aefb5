// Multiplication by bf16 tiles (see tiles.inl) for W in panels of integers: two panels at a time are unpacked
// to the order of B tiles.

/// Two unpacked panels.
inline std::size_t tile_integer_scratch(std::int64_t cols) noexcept {
  return static_cast<std::size_t>(2 * kTileRows * round_up(cols, kBlockColumns) * Bf16::kBytes);
}

template <class W, class Rounding, class Tiles>
void tile_multiply_integers(Tiles& registers, const MatmulArgs& a) {
  const auto stride = static_cast<std::int64_t>(integer_panel_bytes<W>(a.cols));
  const std::int64_t unpacked = round_up(a.cols, W::kColumns) * kTileRows * Bf16::kBytes;
  registers.configure(full_tiles());
  for (std::int64_t row = 0; row < a.rows; row += 2 * kTileRows) {
    const std::byte* w = a.w + row / kTileRows * stride;
    const bool two = a.rows - row > kTileRows;
    unpack_columns<W, Rounding>(w, a.cols, a.scratch);
    if (two) unpack_columns<W, Rounding>(w + stride, a.cols, a.scratch + unpacked);
    // Prefetching walks twice as many bytes as the next panels have, harmlessly.
    tile_panels(registers, a, {a.scratch, two ? unpacked : 0, w + 2 * stride}, row);
  }
  registers.release();
}
