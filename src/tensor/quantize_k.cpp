// Quantising to q4_k and q6_k: first the best scales of each small group for itself, then their rounding to
// integers under the scale of the block, choosing among neighbouring integers by the error that they leave.

#include <algorithm>

#include "qgen/tensor/block_format.h"
#include "qgen/tensor/block_integers.h"
#include "qgen/tensor/blocks.h"
#include "qgen/tensor/convert.h"
#include "tensor/scale_search.h"

namespace qgen {
namespace {

// --- q4_k: x is about scale * q - min, q in 0..15, scale and min not negative

struct Line {
  float scale = 0, min = 0;
};

struct FittedLine {
  Line line;
  float gain = 0;  ///< what it takes off the sum of squares of x
};

/// The line through (q, x) with the least squares, among those with min >= 0.
FittedLine fitted_line(const float* x, float x_sum, const Group<32>& q) noexcept {
  const float q_sum = sum(q), qq = dot<32>(q.data(), q.data()), xq = dot<32>(x, q.data());
  const float determinant = 32 * qq - q_sum * q_sum;
  if (determinant > 0) {
    const float scale = (32 * xq - x_sum * q_sum) / determinant;
    const float offset = (qq * x_sum - q_sum * xq) / determinant;
    if (offset <= 0 && scale >= 0) return {{scale, -offset}, scale * xq + offset * x_sum};
  }
  const float scale = qq > 0 ? xq / qq : 0;
  return scale > 0 ? FittedLine{{scale, 0}, scale * xq} : FittedLine{};
}

Group<32> rounded_q4(const float* x, const Line& line) noexcept {
  return rounded<32>(x, line.min, inverse(line.scale), 0, 15);
}

Line best_line(const float* x) noexcept {
  const float low = std::min(0.0f, *std::min_element(x, x + 32));
  const float high = std::max(0.0f, *std::max_element(x, x + 32));
  Group<32> values;
  std::copy_n(x, 32, values.data());
  const float x_sum = sum(values);
  FittedLine best;
  const auto improve = [&](const Line& line) {
    const FittedLine fitted = fitted_line(x, x_sum, rounded_q4(x, line));
    if (fitted.gain > best.gain) best = fitted;
  };
  // The range of x on 14 to 17 steps.
  for (int quarters = 56; quarters <= 68; ++quarters) {
    improve({(high - low) * 4 / static_cast<float>(quarters), -low});
  }
  for (int round = 0; round < 3; ++round) improve(best.line);
  return best.line;
}

/// One group of 32 with its integers.
struct GroupQ4 {
  int scale = 0, min = 0;
  Group<32> q{};
  float error = 0;
};

GroupQ4 group_q4(const float* x, float d, float dmin, int scale, int min) noexcept {
  GroupQ4 group{scale, min, {}, 0};
  const Line line{d * static_cast<float>(scale), dmin * static_cast<float>(min)};
  group.q = rounded_q4(x, line);
  group.error = squared_error(x, group.q, line.scale, line.min);
  return group;
}

int rounded_to(float value, int low, int high) noexcept {
  return static_cast<int>(nearest(clamped(value, static_cast<float>(low), static_cast<float>(high))));
}

GroupQ4 best_group_q4(const float* x, float d, float dmin, const Line& wanted) noexcept {
  const int scale = rounded_to(wanted.scale * inverse(d), 0, 63);
  const int min = rounded_to(wanted.min * inverse(dmin), 0, 63);
  GroupQ4 best = group_q4(x, d, dmin, scale, min);
  for (int s = std::max(scale - 2, 0); s <= std::min(scale + 2, 63); ++s) {
    for (int m = std::max(min - 1, 0); m <= std::min(min + 1, 63); ++m) {
      const GroupQ4 other = group_q4(x, d, dmin, s, m);
      if (other.error < best.error) best = other;
    }
  }
  return best;
}

BlockQ4K block_q4_k(const float* x) noexcept {
  std::array<Line, 8> lines;
  Line most;
  for (std::size_t s = 0; s < 8; ++s) {
    lines[s] = best_line(x + 32 * s);
    most = {std::max(most.scale, lines[s].scale), std::max(most.min, lines[s].min)};
  }
  BlockQ4K block{f32_to_f16(most.scale / 63), f32_to_f16(most.min / 63), {}, {}};
  const float d = f16_to_f32(block.d), dmin = f16_to_f32(block.dmin);
  SixBitPairs pairs{};
  for (std::size_t s = 0; s < 8; ++s) {
    const GroupQ4 group = best_group_q4(x + 32 * s, d, dmin, lines[s]);
    pairs.scale[s] = static_cast<std::uint8_t>(group.scale);
    pairs.min[s] = static_cast<std::uint8_t>(group.min);
    for (std::size_t j = 0; j < 32; ++j) {
      std::uint8_t& byte = block.q[32 * (s / 2) + j];
      byte = static_cast<std::uint8_t>(byte | static_cast<int>(group.q[j]) << (4 * (s % 2)));
    }
  }
  block.scales = pack_pairs(pairs);
  return block;
}

// --- q6_k: x is about scale * q, q in -32..31, scales of both signs

struct GroupQ6 {
  int scale = 0;
  Group<16> q{};
  float error = 0;
};

GroupQ6 group_q6(const float* x, float d, int scale) noexcept {
  GroupQ6 group{scale, {}, 0};
  const float stored = d * static_cast<float>(scale);
  group.q = rounded<16>(x, 0, inverse(stored), -32, 31);
  group.error = squared_error(x, group.q, stored, 0);
  return group;
}

GroupQ6 best_group_q6(const float* x, float d, float wanted) noexcept {
  const int scale = rounded_to(wanted * inverse(d), -128, 127);
  GroupQ6 best = group_q6(x, d, scale);
  for (int s = std::max(scale - 2, -128); s <= std::min(scale + 2, 127); ++s) {
    const GroupQ6 other = group_q6(x, d, s);
    if (other.error < best.error) best = other;
  }
  return best;
}

BlockQ6K block_q6_k(const float* x) noexcept {
  std::array<float, 16> scales;
  for (std::size_t s = 0; s < 16; ++s) scales[s] = fitted_scale<32, 16>(x + 16 * s);
  BlockQ6K block{};
  // The largest becomes -128, of which there is no positive counterpart.
  block.d = f32_to_f16(extreme<16>(scales.data()) / -128);
  const float d = f16_to_f32(block.d);
  for (std::size_t s = 0; s < 16; ++s) {
    const GroupQ6 group = best_group_q6(x + 16 * s, d, scales[s]);
    block.scales[s] = static_cast<std::int8_t>(group.scale);
    for (std::size_t j = 0; j < 16; ++j) {
      const std::size_t in_half = (16 * s + j) % 128, half = s / 8;
      const int q = static_cast<int>(group.q[j]) + 32;
      std::uint8_t& low = block.q[64 * half + in_half % 64];
      std::uint8_t& high = block.high[32 * half + in_half % 32];
      low = static_cast<std::uint8_t>(low | (q & 0xF) << (4 * (in_half / 64)));
      high = static_cast<std::uint8_t>(high | (q >> 4) << (2 * (in_half / 32)));
    }
  }
  return block;
}

}  // namespace

void quantize_q4_k(const float* src, std::int64_t n, std::byte* dst) noexcept {
  write_blocks<BlockQ4K>(src, n, dst, block_q4_k);
}

void quantize_q6_k(const float* src, std::int64_t n, std::byte* dst) noexcept {
  write_blocks<BlockQ6K>(src, n, dst, block_q6_k);
}

}  // namespace qgen
