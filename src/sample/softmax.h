#pragma once

#include <bit>
#include <cstdint>
#include <span>

namespace qgen {

/// exp(x) for x <= 0 with a relative error below 2^-22, exactly 1 at 0, and 0 below -87 where floats would
/// leave their normal range. Plain additions and multiplications only, so that every machine gives the same
/// bits (the C library's exp does not promise that) and loops over it can be vectorised.
inline float exp_nonpositive(float x) noexcept {
  // x = n ln 2 + r with n whole and |r| <= ln 2 / 2; adding 1.5 * 2^23 rounds to a whole number.
  constexpr float kRound = 12582912.0f;
  const float clamped = x < -87.0f ? -87.0f : x;
  const float n = (clamped * 1.44269504f + kRound) - kRound;
  const float r = (clamped - n * 0.693359375f) - n * -2.12194440e-4f;
  // Taylor's polynomial of exp(r): its next term, r^8 / 8!, is below 2^-27 of the result.
  float p = 1.0f / 5040;
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const auto exponent = static_cast<std::uint32_t>(static_cast<std::int32_t>(n) + 127) << 23;
  const float result = p * std::bit_cast<float>(exponent);
  return x < -87.0f ? 0.0f : result;
}

/// weights[i] = exp(logits[i] - top); `top` must be the largest logit.
void exp_weights(std::span<const float> logits, float top, std::span<float> weights) noexcept;

/// The sum, added up in an order that is always the same, but not that of a loop.
double sum(std::span<const float> values) noexcept;

/// Sums of softmax weights exp(logit - top).
struct Masses {
  double all = 0, near = 0;  ///< of all logits, and of those not below `limit`
};
Masses masses(std::span<const float> logits, float top, float limit) noexcept;

struct Extremes {
  float low = 0, high = 0;
};
/// The smallest and the largest of `values` (at least one, no NaN).
Extremes extremes(std::span<const float> values) noexcept;

}  // namespace qgen
