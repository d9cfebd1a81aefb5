#pragma once

#include <cstdint>

namespace qgen::kernels {

/// What LDTILECFG reads: the shapes of the eight tile registers of AMX.
struct alignas(64) TileConfig {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};  ///< of each tile, at most 64; only the first eight exist
  std::uint8_t rows[16] = {};        ///< of each tile, at most 16
};
static_assert(sizeof(TileConfig) == 64);

/// All eight tiles of their full size: 16 rows of 64 bytes.
constexpr TileConfig full_tiles() {
  TileConfig config;
  for (int i = 0; i < 8; ++i) {
    config.row_bytes[i] = 64;
    config.rows[i] = 16;
  }
  return config;
}

}  // namespace qgen::kernels
