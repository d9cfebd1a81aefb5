#pragma once

#include "qgen/tensor/blocks.h"

// What the blocks of the quantised formats hold, unpacked: the integers that scales multiply, of either sign,
// and scales that are integers themselves.
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

/// The scales of q3_k, -32..31: low nibbles in bytes 0..7, eight low and eight high ones, and above them two
/// bits each in bytes 8..11.
inline std::array<std::int8_t, 16> unpack_scales(const ByteArray<12>& packed) noexcept {
  std::array<std::int8_t, 16> scales;
  for (std::size_t s = 0; s < 16; ++s) {
    const int low = (s < 8 ? packed[s] : packed[s - 8] >> 4) & 0xF;
    const int high = packed[8 + s % 4] >> (2 * (s / 4)) & 3;
    scales[s] = static_cast<std::int8_t>((low | high << 4) - 32);
  }
  return scales;
}

/// What the indices of iq4_nl and iq4_xs stand for.
inline constexpr std::array<std::int8_t, 16> kIq4Values{-127, -104, -83, -65, -49, -35, -22, -10,
                                                        1,    13,   25,  38,  53,  69,  89,  113};

template <std::size_t kCount>
using SignedBytes = std::array<std::int8_t, kCount>;

/// The nibbles of runs of kRun bytes, first all low ones, then all high ones, plus `offset`.
template <std::size_t kRun, std::size_t kBytes>
SignedBytes<2 * kBytes> unpack_nibbles(const ByteArray<kBytes>& q, int offset) noexcept {
  SignedBytes<2 * kBytes> out;
  for (std::size_t from = 0; from < kBytes; from += kRun) {
    for (std::size_t j = 0; j < kRun; ++j) {
      out[2 * from + j] = static_cast<std::int8_t>((q[from + j] & 0xF) + offset);
      out[2 * from + kRun + j] = static_cast<std::int8_t>((q[from + j] >> 4) + offset);
    }
  }
  return out;
}

/// Element 128 h + 32 s + j has the bits 2 s and 2 s + 1 of byte 32 h + j.
inline SignedBytes<256> unpack_bit_pairs(const ByteArray<64>& q) noexcept {
  SignedBytes<256> out;
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t s = 0; s < 4; ++s) {
      for (std::size_t j = 0; j < 32; ++j) {
        out[128 * half + 32 * s + j] = static_cast<std::int8_t>(q[32 * half + j] >> (2 * s) & 3);
      }
    }
  }
  return out;
}

/// Adds `weight` to every element 32 k + j where bit k of high[j] is set.
inline void add_bits(const ByteArray<32>& high, int weight, SignedBytes<256>& q) noexcept {
  for (std::size_t k = 0; k < 8; ++k) {
    for (std::size_t j = 0; j < 32; ++j) {
      q[32 * k + j] = static_cast<std::int8_t>(q[32 * k + j] + (high[j] >> k & 1) * weight);
    }
  }
}

/// Nibbles with a fifth bit from `high`, plus `offset`.
inline SignedBytes<32> unpack_five_bits(const ByteArray<16>& q, const ByteArray<4>& high,
                                        int offset) noexcept {
  SignedBytes<32> out = unpack_nibbles<16>(q, offset);
  for (std::size_t i = 0; i < 32; ++i) {
    out[i] = static_cast<std::int8_t>(out[i] + ((high[i / 8] >> i % 8 & 1) << 4));
  }
  return out;
}

// The integers of a block in the order of its elements.

inline SignedBytes<32> integers(const BlockQ8_0& block) noexcept {
  return block.q;
}
inline SignedBytes<32> integers(const BlockQ4_0& block) noexcept {
  return unpack_nibbles<16>(block.q, -8);
}
inline SignedBytes<32> integers(const BlockQ4_1& block) noexcept {
  return unpack_nibbles<16>(block.q, 0);
}
inline SignedBytes<32> integers(const BlockQ5_0& block) noexcept {
  return unpack_five_bits(block.q, block.high, -16);
}
inline SignedBytes<32> integers(const BlockQ5_1& block) noexcept {
  return unpack_five_bits(block.q, block.high, 0);
}
inline SignedBytes<256> integers(const BlockQ2K& block) noexcept {
  return unpack_bit_pairs(block.q);
}
inline SignedBytes<256> integers(const BlockQ3K& block) noexcept {
  SignedBytes<256> q = unpack_bit_pairs(block.q);
  for (std::int8_t& value : q) value = static_cast<std::int8_t>(value - 4);
  add_bits(block.high, 4, q);
  return q;
}
inline SignedBytes<256> integers(const BlockQ4K& block) noexcept {
  return unpack_nibbles<32>(block.q, 0);
}
inline SignedBytes<256> integers(const BlockQ5K& block) noexcept {
  SignedBytes<256> q = unpack_nibbles<32>(block.q, 0);
  add_bits(block.high, 16, q);
  return q;
}
inline SignedBytes<256> integers(const BlockQ6K& block) noexcept {
  SignedBytes<256> q = unpack_nibbles<64>(block.q, -32);
  const SignedBytes<256> high = unpack_bit_pairs(block.high);
  for (std::size_t i = 0; i < q.size(); ++i) q[i] = static_cast<std::int8_t>(q[i] + (high[i] << 4));
  return q;
}
inline SignedBytes<32> integers(const BlockIq4Nl& block) noexcept {
  SignedBytes<32> q = unpack_nibbles<16>(block.q, 0);
  for (std::int8_t& value : q) value = kIq4Values[static_cast<std::size_t>(value)];
  return q;
}
inline SignedBytes<256> integers(const BlockIq4Xs& block) noexcept {
  SignedBytes<256> q = unpack_nibbles<16>(block.q, 0);
  for (std::int8_t& value : q) value = kIq4Values[static_cast<std::size_t>(value)];
  return q;
}

}  // namespace qgen
