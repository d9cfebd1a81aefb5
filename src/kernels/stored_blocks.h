#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// Blocks of the quantised formats of GGUF, taken apart for panels.
namespace qgen::kernels {

/// Some columns of one row: two groups of kGroup, or the eight of a super-block.
struct BlockParts {
  alignas(64) std::array<std::uint8_t, 256> q;  ///< the integers, with a bias so that none is negative
  std::array<std::uint16_t, 2> d, m;   ///< scales and minima in f16 by group; [0]: factors of the bytes
  std::array<std::int8_t, 16> scales;  ///< by 32 or 16 columns
  std::array<std::int8_t, 8> minima;   ///< by 32 columns
};

/// Reads one block as the parts from group `group` on.
using ReadBlock = void (*)(const std::byte* block, std::size_t group, BlockParts& to) noexcept;

// For panels of q8, with a bias of 128.
void read_q8_0(const std::byte* block, std::size_t group, BlockParts& to) noexcept;
void read_q5_0(const std::byte* block, std::size_t group, BlockParts& to) noexcept;
void read_iq4_nl(const std::byte* block, std::size_t group, BlockParts& to) noexcept;
// For panels of q4, with a bias of 8.
void read_q4_0(const std::byte* block, std::size_t group, BlockParts& to) noexcept;
// For panels of q4_1.
void read_q4_1(const std::byte* block, std::size_t group, BlockParts& to) noexcept;
// For panels of q4_k: minima are added there, so m has the other sign.
void read_q4_k(const std::byte* block, std::size_t group, BlockParts& to) noexcept;
// For panels of q6_k, with a bias of 32.
void read_q3_k(const std::byte* block, std::size_t group, BlockParts& to) noexcept;
void read_q6_k(const std::byte* block, std::size_t group, BlockParts& to) noexcept;

}  // namespace qgen::kernels
