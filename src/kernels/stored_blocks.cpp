#include "kernels/stored_blocks.h"

#include <algorithm>

#include "qgen/tensor/block_integers.h"
#include "qgen/tensor/blocks.h"

namespace qgen::kernels {
namespace {

/// Integers from `group` on, made positive by adding `bias`.
template <std::size_t kCount>
void put(const SignedBytes<kCount>& q, int bias, std::size_t group, BlockParts& to) noexcept {
  for (std::size_t i = 0; i < kCount; ++i) to.q[32 * group + i] = static_cast<std::uint8_t>(q[i] + bias);
}

/// A block with one scale, and perhaps a minimum.
template <class Block, int kBias>
void read_scaled(const std::byte* from, std::size_t group, BlockParts& to) noexcept {
  const auto block = load_block<Block>(from);
  put(integers(block), kBias, group, to);
  to.d[group] = block.d;
  if constexpr (requires { block.m; }) to.m[group] = block.m;
}

}  // namespace

void read_q8_0(const std::byte* block, std::size_t group, BlockParts& to) noexcept {
  read_scaled<BlockQ8_0, 128>(block, group, to);
}

void read_q5_0(const std::byte* block, std::size_t group, BlockParts& to) noexcept {
  read_scaled<BlockQ5_0, 128>(block, group, to);
}

void read_iq4_nl(const std::byte* block, std::size_t group, BlockParts& to) noexcept {
  read_scaled<BlockIq4Nl, 128>(block, group, to);
}

void read_q4_0(const std::byte* block, std::size_t group, BlockParts& to) noexcept {
  read_scaled<BlockQ4_0, 8>(block, group, to);
}

void read_q4_1(const std::byte* block, std::size_t group, BlockParts& to) noexcept {
  read_scaled<BlockQ4_1, 0>(block, group, to);
}

void read_q4_k(const std::byte* from, std::size_t group, BlockParts& to) noexcept {
  const auto block = load_block<BlockQ4K>(from);
  const SixBitPairs pairs = unpack_pairs(block.scales);
  put(integers(block), 0, group, to);
  std::copy(pairs.scale.begin(), pairs.scale.end(), to.scales.begin());
  std::copy(pairs.min.begin(), pairs.min.end(), to.minima.begin());
  to.d[0] = block.d;
  to.m[0] = block.dmin ^ 0x8000;
}

void read_q3_k(const std::byte* from, std::size_t group, BlockParts& to) noexcept {
  const auto block = load_block<BlockQ3K>(from);
  put(integers(block), 32, group, to);
  to.scales = unpack_scales(block.scales);
  to.d[0] = block.d;
}

void read_q6_k(const std::byte* from, std::size_t group, BlockParts& to) noexcept {
  const auto block = load_block<BlockQ6K>(from);
  put(integers(block), 32, group, to);
  to.scales = block.scales;
  to.d[0] = block.d;
}

}  // namespace qgen::kernels
