#pragma once

#include "tensor/blocks.h"

namespace qgen {

/// Scales and minima of the eight groups of 32 in q4_k and q5_k, 0..63.
struct SixBitPairs {
  ByteArray<8> scale, min;
};

// Bytes 0..3 hold the scales 0..3, bytes 4..7 the minima 0..3, in their low six bits. Bytes 8..11 hold the
// low nibbles of scales (low) and minima (high) 4..7, whose upper two bits are on top of bytes 0..3 and 4..7.

inline SixBitPairs unpack_pairs(const ByteArray<12>& packed) noexcept {
  SixBitPairs pairs;
  for (std::size_t i = 0; i < 4; ++i) {
    pairs.scale[i] = packed[i] & 0x3F;
    pairs.min[i] = packed[i + 4] & 0x3F;
    pairs.scale[i + 4] = static_cast<std::uint8_t>((packed[i + 8] & 0xF) | (packed[i] >> 6) << 4);
    pairs.min[i + 4] = static_cast<std::uint8_t>((packed[i + 8] >> 4) | (packed[i + 4] >> 6) << 4);
  }
  return pairs;
}

inline ByteArray<12> pack_pairs(const SixBitPairs& pairs) noexcept {
  ByteArray<12> packed;
  for (std::size_t i = 0; i < 4; ++i) {
    packed[i] = static_cast<std::uint8_t>(pairs.scale[i] | (pairs.scale[i + 4] >> 4) << 6);
    packed[i + 4] = static_cast<std::uint8_t>(pairs.min[i] | (pairs.min[i + 4] >> 4) << 6);
    packed[i + 8] = static_cast<std::uint8_t>((pairs.scale[i + 4] & 0xF) | (pairs.min[i + 4] & 0xF) << 4);
  }
  return packed;
}

}  // namespace qgen
