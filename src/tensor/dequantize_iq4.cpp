// Formats whose four bits are indices of a table with uneven steps: iq4_nl, iq4_xs.

#include "qgen/tensor/block_format.h"
#include "qgen/tensor/block_integers.h"
#include "qgen/tensor/blocks.h"
#include "qgen/tensor/convert.h"

namespace qgen {
namespace {

/// dst[32] = scale * q.
void multiply(float scale, const std::int8_t* q, float* dst) noexcept {
  for (int i = 0; i < 32; ++i) dst[i] = scale * static_cast<float>(q[i]);
}

}  // namespace

void dequantize_iq4_nl(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockIq4Nl>(src, n, dst, [](const BlockIq4Nl& block, float* out) {
    multiply(f16_to_f32(block.d), integers(block).data(), out);
  });
}

void dequantize_iq4_xs(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockIq4Xs>(src, n, dst, [](const BlockIq4Xs& block, float* out) {
    const auto q = integers(block);
    const float d = f16_to_f32(block.d);
    for (std::size_t s = 0; s < 8; ++s) {
      const int low = block.scales_low[s / 2] >> (4 * (s % 2)) & 0xF;
      const int high = block.scales_high >> (2 * s) & 3;
      multiply(d * static_cast<float>((low | high << 4) - 32), q.data() + 32 * s, out + 32 * s);
    }
  });
}

}  // namespace qgen
