// Formats with blocks of 32 and one scale: q8_0, q4_0, q4_1, q5_0, q5_1.

#include "qgen/tensor/block_format.h"
#include "qgen/tensor/convert.h"
#include "tensor/blocks.h"

namespace qgen {
namespace {

using Integers = std::array<std::int8_t, 32>;

Integers nibbles(const ByteArray<16>& q, int offset) noexcept {
  Integers out;
  for (std::size_t i = 0; i < 16; ++i) {
    out[i] = static_cast<std::int8_t>((q[i] & 0xF) + offset);
    out[i + 16] = static_cast<std::int8_t>((q[i] >> 4) + offset);
  }
  return out;
}

/// Nibbles with a fifth bit from `high`.
Integers five_bits(const ByteArray<16>& q, const ByteArray<4>& high, int offset) noexcept {
  Integers out = nibbles(q, offset);
  for (std::size_t byte = 0; byte < 4; ++byte) {
    for (std::size_t bit = 0; bit < 8; ++bit) {
      std::int8_t& value = out[8 * byte + bit];
      value = static_cast<std::int8_t>(value + ((high[byte] >> bit & 1) << 4));
    }
  }
  return out;
}

void multiply(float d, const Integers& q, float* dst) noexcept {
  for (std::size_t i = 0; i < 32; ++i) dst[i] = d * static_cast<float>(q[i]);
}

void multiply_add(float d, const Integers& q, float m, float* dst) noexcept {
  for (std::size_t i = 0; i < 32; ++i) dst[i] = d * static_cast<float>(q[i]) + m;
}

}  // namespace

void dequantize_q8_0(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ8_0>(
      src, n, dst, [](const BlockQ8_0& block, float* out) { multiply(f16_to_f32(block.d), block.q, out); });
}

void dequantize_q4_0(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ4_0>(src, n, dst, [](const BlockQ4_0& block, float* out) {
    multiply(f16_to_f32(block.d), nibbles(block.q, -8), out);
  });
}

void dequantize_q4_1(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ4_1>(src, n, dst, [](const BlockQ4_1& block, float* out) {
    multiply_add(f16_to_f32(block.d), nibbles(block.q, 0), f16_to_f32(block.m), out);
  });
}

void dequantize_q5_0(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ5_0>(src, n, dst, [](const BlockQ5_0& block, float* out) {
    multiply(f16_to_f32(block.d), five_bits(block.q, block.high, -16), out);
  });
}

void dequantize_q5_1(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ5_1>(src, n, dst, [](const BlockQ5_1& block, float* out) {
    multiply_add(f16_to_f32(block.d), five_bits(block.q, block.high, 0), f16_to_f32(block.m), out);
  });
}

}  // namespace qgen
