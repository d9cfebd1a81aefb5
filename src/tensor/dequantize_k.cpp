// Formats with blocks of 256 that hold integer scales of their own for every 16 or 32 elements: q2_k to q6_k.

#include "qgen/tensor/block_format.h"
#include "qgen/tensor/convert.h"
#include "tensor/blocks.h"
#include "tensor/scales.h"

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

using Integers = std::array<std::int8_t, 256>;

/// Element 128 h + 32 s + j has the bits 2 s and 2 s + 1 of byte 32 h + j.
Integers two_bits(const ByteArray<64>& q) noexcept {
  Integers out;
  for (std::size_t half = 0; half < 2; ++half) {
    for (std::size_t s = 0; s < 4; ++s) {
      for (std::size_t j = 0; j < 32; ++j) {
        out[128 * half + 32 * s + j] = static_cast<std::int8_t>(q[32 * half + j] >> (2 * s) & 3);
      }
    }
  }
  return out;
}

/// The nibbles of runs of kRun bytes: first all low ones, then all high ones.
template <std::size_t kRun>
Integers nibbles(const ByteArray<128>& q) noexcept {
  Integers out;
  for (std::size_t from = 0; from < 128; from += kRun) {
    for (std::size_t j = 0; j < kRun; ++j) {
      out[2 * from + j] = static_cast<std::int8_t>(q[from + j] & 0xF);
      out[2 * from + kRun + j] = static_cast<std::int8_t>(q[from + j] >> 4);
    }
  }
  return out;
}

/// Adds `weight` to every element 32 k + j whose bit, number k of high[j], is `set`.
void add_bit(const ByteArray<32>& high, bool set, int weight, Integers& q) noexcept {
  for (std::size_t k = 0; k < 8; ++k) {
    for (std::size_t j = 0; j < 32; ++j) {
      const int bit = (high[j] >> k & 1) ^ (set ? 0 : 1);
      q[32 * k + j] = static_cast<std::int8_t>(q[32 * k + j] + bit * weight);
    }
  }
}

void scale_and_shift(float d, float dmin, const ByteArray<12>& packed, const Integers& q,
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
    const Integers q = two_bits(block.q);
    const float d = f16_to_f32(block.d), dmin = f16_to_f32(block.dmin);
    for (std::size_t s = 0; s < 16; ++s) {
      multiply_subtract<16>(d * static_cast<float>(block.scales[s] & 0xF), q.data() + 16 * s,
                            dmin * static_cast<float>(block.scales[s] >> 4), out + 16 * s);
    }
  });
}

void dequantize_q3_k(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ3K>(src, n, dst, [](const BlockQ3K& block, float* out) {
    Integers q = two_bits(block.q);
    add_bit(block.high, false, -4, q);
    const float d = f16_to_f32(block.d);
    for (std::size_t s = 0; s < 16; ++s) {
      const int low = (s < 8 ? block.scales[s] : block.scales[s - 8] >> 4) & 0xF;
      const int high = block.scales[8 + s % 4] >> (2 * (s / 4)) & 3;
      multiply<16>(d * static_cast<float>((low | high << 4) - 32), q.data() + 16 * s, out + 16 * s);
    }
  });
}

void dequantize_q4_k(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ4K>(src, n, dst, [](const BlockQ4K& block, float* out) {
    scale_and_shift(f16_to_f32(block.d), f16_to_f32(block.dmin), block.scales, nibbles<32>(block.q), out);
  });
}

void dequantize_q5_k(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ5K>(src, n, dst, [](const BlockQ5K& block, float* out) {
    Integers q = nibbles<32>(block.q);
    add_bit(block.high, true, 16, q);
    scale_and_shift(f16_to_f32(block.d), f16_to_f32(block.dmin), block.scales, q, out);
  });
}

void dequantize_q6_k(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockQ6K>(src, n, dst, [](const BlockQ6K& block, float* out) {
    Integers q = nibbles<64>(block.q);
    const Integers high = two_bits(block.high);
    for (std::size_t i = 0; i < 256; ++i) q[i] = static_cast<std::int8_t>((q[i] | high[i] << 4) - 32);
    const float d = f16_to_f32(block.d);
    for (std::size_t s = 0; s < 16; ++s) {
      multiply<16>(d * static_cast<float>(block.scales[s]), q.data() + 16 * s, out + 16 * s);
    }
  });
}

}  // namespace qgen
