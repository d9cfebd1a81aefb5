#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

// Least squares over a group of kCount floats x that are to become integers q. Sums run in four lanes, so
// that the compiler vectorises them.
namespace qgen {

/// `value` within [low, high]; `low` for NaN, so that the result can always be converted to an integer.
inline float clamped(float value, float low, float high) noexcept {
  const float above = value > low ? value : low;
  return above < high ? above : high;
}

/// To the nearest integer, ties to even; |value| below 2^22. In this form it is two additions of vectors.
inline float nearest(float value) noexcept {
  constexpr float kShift = 12582912.0f;  // 1.5 * 2^23: no fraction bits are left
  return (value + kShift) - kShift;
}

/// 1 / scale, or 0 for a scale that cannot be divided by.
inline float inverse(float scale) noexcept {
  const float result = 1 / scale;
  return result - result == 0 ? result : 0;
}

template <std::size_t kCount>
using Group = std::array<float, kCount>;

template <std::size_t kCount>
float sum(const Group<kCount>& values) noexcept {
  std::array<float, 4> lanes{};
  for (std::size_t i = 0; i < kCount; i += 4) {
    for (std::size_t lane = 0; lane < 4; ++lane) lanes[lane] += values[i + lane];
  }
  return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

template <std::size_t kCount>
float dot(const float* x, const float* y) noexcept {
  Group<kCount> products;
  for (std::size_t i = 0; i < kCount; ++i) products[i] = x[i] * y[i];
  return sum(products);
}

/// q = (x + shift) * inverse_scale, rounded, within [low, high].
template <std::size_t kCount>
Group<kCount> rounded(const float* x, float shift, float inverse_scale, float low, float high) noexcept {
  // One step in each loop: joined, the two comparisons keep g++ from vectorising them. NaN becomes `low`.
  Group<kCount> q;
  for (std::size_t i = 0; i < kCount; ++i) q[i] = (x[i] + shift) * inverse_scale;
  for (std::size_t i = 0; i < kCount; ++i) q[i] = q[i] > low ? q[i] : low;
  for (std::size_t i = 0; i < kCount; ++i) q[i] = q[i] < high ? q[i] : high;
  for (std::size_t i = 0; i < kCount; ++i) q[i] = nearest(q[i]);
  return q;
}

/// Sum of squares of x - (scale * q - min).
template <std::size_t kCount>
float squared_error(const float* x, const Group<kCount>& q, float scale, float min) noexcept {
  Group<kCount> errors;
  for (std::size_t i = 0; i < kCount; ++i) {
    const float error = x[i] - (scale * q[i] - min);
    errors[i] = error * error;
  }
  return sum(errors);
}

/// The element with the largest magnitude, the first of several.
template <std::size_t kCount>
float extreme(const float* x) noexcept {
  float most = 0, found = 0;
  for (std::size_t i = 0; i < kCount; ++i) {
    const float magnitude = x[i] < 0 ? -x[i] : x[i];
    if (magnitude > most) {
      most = magnitude;
      found = x[i];
    }
  }
  return found;
}

/// The scale, of either sign, with which integers of [-kHalf, kHalf - 1] come closest to x: several are
/// tried, with the extreme of x around either end of the range, and each is fitted to the integers that it
/// gives.
template <int kHalf, std::size_t kCount>
float fitted_scale(const float* x) noexcept {
  const float to_unit = inverse(extreme<kCount>(x));
  float best_gain = 0, best = 0;
  const auto improve = [&](float inverse_scale) {
    const Group<kCount> q = rounded<kCount>(x, 0, inverse_scale, -kHalf, kHalf - 1);
    const float xq = dot<kCount>(x, q.data()), qq = dot<kCount>(q.data(), q.data());
    // The fitted scale xq / qq takes this much off the sum of squares.
    const float gain = qq > 0 ? xq * xq / qq : 0;
    if (gain > best_gain) {
      best_gain = gain;
      best = xq / qq;
    }
  };
  // What the extreme becomes, in thirds; what is beyond the end of the range is cut off.
  for (int thirds = 3 * kHalf - 3; thirds <= 3 * kHalf + 6; ++thirds) {
    improve(to_unit * static_cast<float>(-thirds) / 3);
    improve(to_unit * static_cast<float>(thirds) / 3);
  }
  return best;
}

}  // namespace qgen
