#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

// Blocks as they lie in files. `d` and `dmin` are f16 scales, `q` the packed integers, low bits first.
namespace qgen {

static_assert(std::endian::native == std::endian::little, "blocks are read as they lie in files");

template <std::size_t kCount>
using ByteArray = std::array<std::uint8_t, kCount>;

struct BlockQ8_0 {
  static constexpr int kElements = 32;
  std::uint16_t d;
  std::array<std::int8_t, 32> q;
};

/// Byte i holds elements i (low four bits) and i + 16.
struct BlockQ4_0 {
  static constexpr int kElements = 32;
  std::uint16_t d;
  ByteArray<16> q;
};

struct BlockQ4_1 {
  static constexpr int kElements = 32;
  std::uint16_t d, m;
  ByteArray<16> q;
};

/// Bit i of the four bytes `high` is the fifth of element i.
struct BlockQ5_0 {
  static constexpr int kElements = 32;
  std::uint16_t d;
  ByteArray<4> high;
  ByteArray<16> q;
};

struct BlockQ5_1 {
  static constexpr int kElements = 32;
  std::uint16_t d, m;
  ByteArray<4> high;
  ByteArray<16> q;
};

/// scales: per 16 elements the scale (low) and the minimum (high). q: each half has 32 bytes; two bits of
/// byte j belong to elements j, 32 + j, 64 + j, 96 + j of the half.
struct BlockQ2K {
  static constexpr int kElements = 256;
  ByteArray<16> scales;
  ByteArray<64> q;
  std::uint16_t d, dmin;
};

/// q as in BlockQ2K; bit k of high[j] is the third of element 32 k + j. scales: 16 of six bits.
struct BlockQ3K {
  static constexpr int kElements = 256;
  ByteArray<32> high;
  ByteArray<64> q;
  ByteArray<12> scales;
  std::uint16_t d;
};

/// scales: per 32 elements a scale and a minimum of six bits. q: 32 bytes for each 64 elements, byte j
/// holding elements j (low) and 32 + j.
struct BlockQ4K {
  static constexpr int kElements = 256;
  std::uint16_t d, dmin;
  ByteArray<12> scales;
  ByteArray<128> q;
};

/// As BlockQ4K; bit k of high[j] is the fifth of element 32 k + j.
struct BlockQ5K {
  static constexpr int kElements = 256;
  std::uint16_t d, dmin;
  ByteArray<12> scales;
  ByteArray<32> high;
  ByteArray<128> q;
};

/// In each half of 128 elements, byte j of 64 in q holds elements j (low) and 64 + j, byte j of 32 in `high`
/// two bits of elements j, 32 + j, 64 + j, 96 + j. scales: one for 16 elements.
struct BlockQ6K {
  static constexpr int kElements = 256;
  ByteArray<128> q;
  ByteArray<64> high;
  std::array<std::int8_t, 16> scales;
  std::uint16_t d;
};

/// q as in BlockQ4_0, indices of kIq4Values.
struct BlockIq4Nl {
  static constexpr int kElements = 32;
  std::uint16_t d;
  ByteArray<16> q;
};

/// Eight times 32 elements as in BlockIq4Nl, with scales of six bits: four low ones in scales_low, two in
/// scales_high.
struct BlockIq4Xs {
  static constexpr int kElements = 256;
  std::uint16_t d, scales_high;
  ByteArray<4> scales_low;
  ByteArray<128> q;
};

static_assert(sizeof(BlockQ8_0) == 34 && sizeof(BlockQ4_0) == 18 && sizeof(BlockQ4_1) == 20);
static_assert(sizeof(BlockQ5_0) == 22 && sizeof(BlockQ5_1) == 24 && sizeof(BlockQ2K) == 84);
static_assert(sizeof(BlockQ3K) == 110 && sizeof(BlockQ4K) == 144 && sizeof(BlockQ5K) == 176);
static_assert(sizeof(BlockQ6K) == 210 && sizeof(BlockIq4Nl) == 18 && sizeof(BlockIq4Xs) == 136);

/// The block at any address. A copy, so that the compiler sees that writing elsewhere cannot change it.
template <class Block>
Block load_block(const std::byte* src) noexcept {
  Block block;
  std::memcpy(&block, src, sizeof block);
  return block;
}

/// Calls f(block, its elements in dst) for the blocks of n elements.
template <class Block, class Function>
void read_blocks(const std::byte* src, std::int64_t n, float* dst, const Function& f) {
  for (; n > 0; n -= Block::kElements, src += sizeof(Block), dst += Block::kElements) {
    f(load_block<Block>(src), dst);
  }
}

/// dst = the blocks f(their elements in src).
template <class Block, class Function>
void write_blocks(const float* src, std::int64_t n, std::byte* dst, const Function& f) {
  for (; n > 0; n -= Block::kElements, src += Block::kElements, dst += sizeof(Block)) {
    const Block block = f(src);
    std::memcpy(dst, &block, sizeof block);
  }
}

}  // namespace qgen
