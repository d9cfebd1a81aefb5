// Formats with blocks of 32 and one scale: q8_0, q4_0, q4_1, q5_0, q5_1.

#include "qgen/tensor/block_format.h"
#include "qgen/tensor/block_integers.h"
#include "qgen/tensor/blocks.h"
#include "qgen/tensor/convert.h"

namespace qgen {
namespace {

void multiply(float d, const SignedBytes<32>& q, float* dst) noexcept {
  for (std::size_t i = 0; i < 32; ++i) dst[i] = d * static_cast<float>(q[i]);
}

void multiply_add(float d, const SignedBytes<32>& q, float m, float* dst) noexcept {
  for (std::size_t i = 0; i < 32; ++i) dst[i] = d * static_cast<float>(q[i]) + m;
}

}  // namespace

void dequantize_q8_0(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ8_0>(src, n, dst, [](const BlockQ8_0& block, float* out) {
    multiply(f16_to_f32(block.d), integers(block), out);
  });
}

void dequantize_q4_0(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ4_0>(src, n, dst, [](const BlockQ4_0& block, float* out) {
    multiply(f16_to_f32(block.d), integers(block), out);
  });
}

void dequantize_q4_1(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ4_1>(src, n, dst, [](const BlockQ4_1& block, float* out) {
    multiply_add(f16_to_f32(block.d), integers(block), f16_to_f32(block.m), out);
  });
}

void dequantize_q5_0(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ5_0>(src, n, dst, [](const BlockQ5_0& block, float* out) {
    multiply(f16_to_f32(block.d), integers(block), out);
  });
}

void dequantize_q5_1(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ5_1>(src, n, dst, [](const BlockQ5_1& block, float* out) {
    multiply_add(f16_to_f32(block.d), integers(block), f16_to_f32(block.m), out);
  });
}

}  // namespace qgen
