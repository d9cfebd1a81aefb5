#pragma once

#include <cstddef>
#include <cstdint>

#include "qgen/tensor/dtype.h"

// The quantised formats of GGUF: blocks of 32 or 256 neighbouring elements that share scales, laid out as in
// the ggml library's ggml-common.h, little-endian.
namespace qgen {

// dst[n] = the values of n elements at src (any address), n a multiple of block_elements. Each value is
// computed in f32, rounded after every operation and in this order, as the gguf package does:
//   q8_0 q4_0 q5_0 iq4_nl    d * q
//   q4_1 q5_1                (d * q) + m
//   q3_k q6_k iq4_xs         (d * scale) * q
//   q2_k q4_k q5_k           ((d * scale) * q) - (dmin * min)
// Any bytes are values: scales may be infinite or NaN.
void dequantize_q8_0(const std::byte* src, std::int64_t n, float* dst) noexcept;
void dequantize_q4_0(const std::byte* src, std::int64_t n, float* dst) noexcept;
void dequantize_q4_1(const std::byte* src, std::int64_t n, float* dst) noexcept;
void dequantize_q5_0(const std::byte* src, std::int64_t n, float* dst) noexcept;
void dequantize_q5_1(const std::byte* src, std::int64_t n, float* dst) noexcept;
void dequantize_q2_k(const std::byte* src, std::int64_t n, float* dst) noexcept;
void dequantize_q3_k(const std::byte* src, std::int64_t n, float* dst) noexcept;
void dequantize_q4_k(const std::byte* src, std::int64_t n, float* dst) noexcept;
void dequantize_q5_k(const std::byte* src, std::int64_t n, float* dst) noexcept;
void dequantize_q6_k(const std::byte* src, std::int64_t n, float* dst) noexcept;
void dequantize_iq4_nl(const std::byte* src, std::int64_t n, float* dst) noexcept;
void dequantize_iq4_xs(const std::byte* src, std::int64_t n, float* dst) noexcept;

using Dequantize = void (*)(const std::byte* src, std::int64_t n, float* dst) noexcept;
/// The function for a weight type, those without blocks included; nullptr for other types.
[[nodiscard]] Dequantize dequantizer(DType dtype) noexcept;

// dst = n floats in blocks, n a multiple of block_elements. q8_0 gives the bytes of the gguf package. The
// others search for the scales with the least sum of squared errors. Values that are not finite, or beyond
// kLargestQuantized, give blocks without meaning.
void quantize_q8_0(const float* src, std::int64_t n, std::byte* dst) noexcept;
void quantize_q4_0(const float* src, std::int64_t n, std::byte* dst) noexcept;
void quantize_q4_k(const float* src, std::int64_t n, std::byte* dst) noexcept;
void quantize_q6_k(const float* src, std::int64_t n, std::byte* dst) noexcept;

/// The largest magnitude whose scale fits f16 in every format: q4_0 divides by at most 8.
inline constexpr float kLargestQuantized = 65504.0f * 7.0f;

using Quantize = void (*)(const float* src, std::int64_t n, std::byte* dst) noexcept;
/// The function for f32, f16, bf16, q8_0, q4_0, q4_k and q6_k; nullptr for other types.
[[nodiscard]] Quantize quantizer(DType dtype) noexcept;

}  // namespace qgen
