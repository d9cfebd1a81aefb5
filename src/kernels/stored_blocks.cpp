#include "kernels/stored_blocks.h"

#include <algorithm>
#include <cstring>

#include "tensor/blocks.h"
#include "tensor/scales.h"

namespace qgen::kernels {
namespace {

/// A copy, because blocks have any address, and so that the compiler sees that writing parts leaves it alone.
template <class Block>
Block load_block(const std::byte* from) noexcept {
  Block block;
  std::memcpy(&block, from, sizeof block);
  return block;
}

std::uint8_t* group_of(BlockParts& parts, std::size_t group) noexcept {
  return parts.q.data() + 32 * group;
}

/// The low nibbles of kCount bytes, then the high ones, `stride` further on.
template <std::size_t kCount>
void split_nibbles(const std::uint8_t* from, std::size_t stride, std::uint8_t* to) noexcept {
  for (std::size_t i = 0; i < kCount; ++i) to[i] = from[i] & 0xF;
  for (std::size_t i = 0; i < kCount; ++i) to[stride + i] = from[i] >> 4;
}

/// Adds bits 2 s and 2 s + 1 of byte j, shifted left by kShift, to element 32 s + j.
template <int kShift>
void add_bit_pairs(const std::uint8_t* from, std::uint8_t* to) noexcept {
  for (int s = 0; s < 4; ++s) {
    for (int j = 0; j < 32; ++j) {
      to[32 * s + j] = static_cast<std::uint8_t>(to[32 * s + j] + ((from[j] >> (2 * s) & 3) << kShift));
    }
  }
}

}  // namespace

void read_q8_0(const std::byte* from, std::size_t group, BlockParts& to) noexcept {
  const auto block = load_block<BlockQ8_0>(from);
  std::uint8_t* q = group_of(to, group);
  for (std::size_t i = 0; i < 32; ++i) q[i] = static_cast<std::uint8_t>(block.q[i] + 128);
  to.d[group] = block.d;
}

void read_q5_0(const std::byte* from, std::size_t group, BlockParts& to) noexcept {
  const auto block = load_block<BlockQ5_0>(from);
  std::uint8_t* q = group_of(to, group);
  split_nibbles<16>(block.q.data(), 16, q);
  for (std::size_t i = 0; i < 32; ++i) {
    q[i] = static_cast<std::uint8_t>(q[i] + ((block.high[i / 8] >> i % 8 & 1) << 4) + 128 - 16);
  }
  to.d[group] = block.d;
}

void read_iq4_nl(const std::byte* from, std::size_t group, BlockParts& to) noexcept {
  constexpr std::array<int, 16> kValues{-127, -104, -83, -65, -49, -35, -22, -10,
                                        1,    13,   25,  38,  53,  69,  89,  113};
  const auto block = load_block<BlockIq4Nl>(from);
  std::uint8_t* q = group_of(to, group);
  split_nibbles<16>(block.q.data(), 16, q);
  for (std::size_t i = 0; i < 32; ++i) q[i] = static_cast<std::uint8_t>(kValues[q[i]] + 128);
  to.d[group] = block.d;
}

void read_q4_0(const std::byte* from, std::size_t group, BlockParts& to) noexcept {
  const auto block = load_block<BlockQ4_0>(from);
  split_nibbles<16>(block.q.data(), 16, group_of(to, group));
  to.d[group] = block.d;
}

void read_q4_1(const std::byte* from, std::size_t group, BlockParts& to) noexcept {
  const auto block = load_block<BlockQ4_1>(from);
  split_nibbles<16>(block.q.data(), 16, group_of(to, group));
  to.d[group] = block.d;
  to.m[group] = block.m;
}

void read_q4_k(const std::byte* from, std::size_t group, BlockParts& to) noexcept {
  const auto block = load_block<BlockQ4K>(from);
  std::uint8_t* q = group_of(to, group);
  for (std::size_t i = 0; i < 4; ++i) split_nibbles<32>(block.q.data() + 32 * i, 32, q + 64 * i);
  const SixBitPairs pairs = unpack_pairs(block.scales);
  std::copy(pairs.scale.begin(), pairs.scale.end(), to.scales.begin());
  std::copy(pairs.min.begin(), pairs.min.end(), to.minima.begin());
  to.d[0] = block.d;
  to.m[0] = block.dmin ^ 0x8000;
}

void read_q3_k(const std::byte* from, std::size_t group, BlockParts& to) noexcept {
  const auto block = load_block<BlockQ3K>(from);
  std::uint8_t* q = group_of(to, group);
  for (std::size_t k = 0; k < 8; ++k) {
    for (std::size_t j = 0; j < 32; ++j) {
      q[32 * k + j] = static_cast<std::uint8_t>(32 - 4 + ((block.high[j] >> k & 1) << 2));
    }
  }
  for (std::size_t half = 0; half < 2; ++half) {
    add_bit_pairs<0>(block.q.data() + 32 * half, q + 128 * half);
  }
  for (std::size_t s = 0; s < 16; ++s) {
    const int low = (s < 8 ? block.scales[s] : block.scales[s - 8] >> 4) & 0xF;
    const int high = block.scales[8 + s % 4] >> (2 * (s / 4)) & 3;
    to.scales[s] = static_cast<std::int8_t>((low | high << 4) - 32);
  }
  to.d[0] = block.d;
}

void read_q6_k(const std::byte* from, std::size_t group, BlockParts& to) noexcept {
  const auto block = load_block<BlockQ6K>(from);
  std::uint8_t* q = group_of(to, group);
  for (std::size_t half = 0; half < 2; ++half) {
    split_nibbles<64>(block.q.data() + 64 * half, 64, q + 128 * half);
    add_bit_pairs<4>(block.high.data() + 32 * half, q + 128 * half);
  }
  to.scales = block.scales;
  to.d[0] = block.d;
}

}  // namespace qgen::kernels
