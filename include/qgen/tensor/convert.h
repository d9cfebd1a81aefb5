#pragma once

#include <bit>
#include <cstdint>

namespace qgen {

/// bfloat16 is the upper half of a float: widening is exact.
inline float bf16_to_f32(std::uint16_t bits) noexcept {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

/// Round to nearest, ties to even; NaN stays NaN (quiet).
inline std::uint16_t f32_to_bf16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFu) > 0x7F800000u) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7FFFu + ((bits >> 16) & 1u)) >> 16);
}

/// IEEE 754 binary16 to binary32: exact, subnormals, infinities and NaN included.
inline float f16_to_f32(std::uint16_t half) noexcept {
  const std::uint32_t sign = static_cast<std::uint32_t>(half & 0x8000u) << 16;
  const std::uint32_t magnitude = half & 0x7FFFu;
  if (magnitude >= 0x7C00u) return std::bit_cast<float>(sign | 0x7F800000u | ((magnitude & 0x3FFu) << 13));
  if (magnitude >= 0x0400u) return std::bit_cast<float>(sign | ((magnitude << 13) + (112u << 23)));
  // A subnormal half is magnitude * 2^-24, which a float holds exactly.
  const float value = static_cast<float>(magnitude) * 0x1p-24f;
  return sign == 0 ? value : -value;
}

/// IEEE 754 binary32 to binary16, round to nearest, ties to even; too large becomes infinity, NaN stays NaN.
inline std::uint16_t f32_to_f16(float value) noexcept {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>((bits >> 16) & 0x8000u);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFu;
  if (magnitude > 0x7F800000u) return static_cast<std::uint16_t>(sign | 0x7E00u);
  if (magnitude >= 0x477FF000u) return static_cast<std::uint16_t>(sign | 0x7C00u);
  if (magnitude < 0x38800000u) {
    // Below the smallest normal half: adding 0.5 lets the float adder round at 2^-24.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5f;
    return static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000u));
  }
  const std::uint32_t rounded = magnitude + 0xFFFu + ((magnitude >> 13) & 1u);
  return static_cast<std::uint16_t>(sign | ((rounded - (112u << 23)) >> 13));
}

}  // namespace qgen
