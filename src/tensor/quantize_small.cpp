// Quantising to q8_0 and q4_0.

#include <cmath>

#include "qgen/tensor/block_format.h"
#include "qgen/tensor/blocks.h"
#include "qgen/tensor/convert.h"
#include "tensor/scale_search.h"

namespace qgen {
namespace {

BlockQ8_0 block_q8_0(const float* x) noexcept {
  const float scale = std::fabs(extreme<32>(x)) / 127;
  const float factor = inverse(scale);
  BlockQ8_0 block{f32_to_f16(scale), {}};
  // Halves away from zero, as the gguf package rounds.
  for (std::size_t i = 0; i < 32; ++i) {
    block.q[i] = static_cast<std::int8_t>(clamped(std::round(x[i] * factor), -127, 127));
  }
  return block;
}

/// What `scale`, rounded to f16, gives.
struct Fit {
  std::uint16_t scale = 0;
  Group<32> q{};
  float error = 0;
};

Fit fit_q4_0(const float* x, float scale) noexcept {
  Fit fit{f32_to_f16(scale), {}, 0};
  const float stored = f16_to_f32(fit.scale);
  fit.q = rounded<32>(x, 0, inverse(stored), -8, 7);
  fit.error = squared_error(x, fit.q, stored, 0);
  return fit;
}

BlockQ4_0 block_q4_0(const float* x) noexcept {
  // The plain scale puts the extreme at -8. Rounding to f16 may spoil a fitted one, thus both are compared as
  // stored.
  const Fit plain = fit_q4_0(x, extreme<32>(x) / -8);
  const Fit fitted = fit_q4_0(x, fitted_scale<8, 32>(x));
  const Fit& best = fitted.error < plain.error ? fitted : plain;
  BlockQ4_0 block{best.scale, {}};
  for (std::size_t i = 0; i < 16; ++i) {
    const int low = static_cast<int>(best.q[i]) + 8, high = static_cast<int>(best.q[i + 16]) + 8;
    block.q[i] = static_cast<std::uint8_t>(low | high << 4);
  }
  return block;
}

}  // namespace

void quantize_q8_0(const float* src, std::int64_t n, std::byte* dst) noexcept {
  write_blocks<BlockQ8_0>(src, n, dst, block_q8_0);
}

void quantize_q4_0(const float* src, std::int64_t n, std::byte* dst) noexcept {
  write_blocks<BlockQ4_0>(src, n, dst, block_q4_0);
}

}  // namespace qgen
