// Formats with blocks of 256 that hold integer scales of their own for every 16 or 32 elements: q2_k to q6_k.

#include "qgen/tensor/block_format.h"
#include "qgen/tensor/block_integers.h"
#include "qgen/tensor/blocks.h"
#include "qgen/tensor/convert.h"

namespace qgen {
namespace {

/// dst[kCount] = scale * q.
template <int kCount>
void multiply(float scale, const std::int8_t* q, float* dst) noexcept {
  for (int i = 0; i < kCount; ++i) dst[i] = scale * static_cast<float>(q[i]);
}

/// dst[kCount] = scale * q - min.
template <int kCount>
void multiply_subtract(float scale, const std::int8_t* q, float min, float* dst) noexcept {
  for (int i = 0; i < kCount; ++i) dst[i] = scale * static_cast<float>(q[i]) - min;
}

void scale_runs(float d, const SignedBytes<16>& scales, const SignedBytes<256>& q, float* dst) noexcept {
  for (std::size_t s = 0; s < 16; ++s) {
    multiply<16>(d * static_cast<float>(scales[s]), q.data() + 16 * s, dst + 16 * s);
  }
}

void scale_and_shift(float d, float dmin, const ByteArray<12>& packed, const SignedBytes<256>& q,
                     float* dst) noexcept {
  const SixBitPairs pairs = unpack_pairs(packed);
  for (std::size_t s = 0; s < 8; ++s) {
    multiply_subtract<32>(d * static_cast<float>(pairs.scale[s]), q.data() + 32 * s,
                          dmin * static_cast<float>(pairs.min[s]), dst + 32 * s);
  }
}

}  // namespace

void dequantize_q2_k(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ2K>(src, n, dst, [](const BlockQ2K& block, float* out) {
    const auto q = integers(block);
    const float d = f16_to_f32(block.d), dmin = f16_to_f32(block.dmin);
    for (std::size_t s = 0; s < 16; ++s) {
      multiply_subtract<16>(d * static_cast<float>(block.scales[s] & 0xF), q.data() + 16 * s,
                            dmin * static_cast<float>(block.scales[s] >> 4), out + 16 * s);
    }
  });
}

void dequantize_q3_k(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ3K>(src, n, dst, [](const BlockQ3K& block, float* out) {
    scale_runs(f16_to_f32(block.d), unpack_scales(block.scales), integers(block), out);
  });
}

void dequantize_q4_k(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ4K>(src, n, dst, [](const BlockQ4K& block, float* out) {
    scale_and_shift(f16_to_f32(block.d), f16_to_f32(block.dmin), block.scales, integers(block), out);
  });
}

void dequantize_q5_k(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ5K>(src, n, dst, [](const BlockQ5K& block, float* out) {
    scale_and_shift(f16_to_f32(block.d), f16_to_f32(block.dmin), block.scales, integers(block), out);
  });
}

void dequantize_q6_k(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ6K>(src, n, dst, [](const BlockQ6K& block, float* out) {
    scale_runs(f16_to_f32(block.d), block.scales, integers(block), out);
  });
}

}  // namespace qgen
