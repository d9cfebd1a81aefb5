#include "qgen/tensor/block_format.h"

#include <array>
#include <cstring>

#include "qgen/tensor/convert.h"

namespace qgen {
namespace {

template <std::uint16_t (*kNarrow)(float) noexcept>
void narrow(const float* src, std::int64_t n, std::byte* dst) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    const std::uint16_t bits = kNarrow(src[i]);
    std::memcpy(dst + i * 2, &bits, sizeof bits);
  }
}

template <float (*kWiden)(std::uint16_t) noexcept>
void widen(const std::byte* src, std::int64_t n, float* dst) noexcept {
  for (std::int64_t i = 0; i < n; ++i) {
    std::uint16_t bits = 0;
    std::memcpy(&bits, src + i * 2, sizeof bits);
    dst[i] = kWiden(bits);
  }
}

void widen_f32(const std::byte* src, std::int64_t n, float* dst) noexcept {
  if (n > 0) std::memcpy(dst, src, static_cast<std::size_t>(n) * sizeof(float));
}

void narrow_f32(const float* src, std::int64_t n, std::byte* dst) noexcept {
  if (n > 0) std::memcpy(dst, src, static_cast<std::size_t>(n) * sizeof(float));
}

/// In the order of DType.
constexpr std::array<Dequantize, kWeightTypes> kDequantizers{
    widen_f32,       widen<f16_to_f32>, widen<bf16_to_f32>, dequantize_q8_0,   dequantize_q4_0,
    dequantize_q4_1, dequantize_q5_0,   dequantize_q5_1,    dequantize_q2_k,   dequantize_q3_k,
    dequantize_q4_k, dequantize_q5_k,   dequantize_q6_k,    dequantize_iq4_nl, dequantize_iq4_xs};

}  // namespace

Dequantize dequantizer(DType dtype) noexcept {
  return is_weight_type(dtype) ? kDequantizers[static_cast<std::size_t>(dtype)] : nullptr;
}

Quantize quantizer(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
      return narrow_f32;
    case DType::f16:
      return narrow<f32_to_f16>;
    case DType::bf16:
      return narrow<f32_to_bf16>;
    case DType::q8_0:
      return quantize_q8_0;
    case DType::q4_0:
      return quantize_q4_0;
    case DType::q4_k:
      return quantize_q4_k;
    case DType::q6_k:
      return quantize_q6_k;
    default:
      return nullptr;
  }
}

}  // namespace qgen
