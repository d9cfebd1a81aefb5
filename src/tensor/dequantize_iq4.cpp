// Formats whose four bits are indices of a table with uneven steps: iq4_nl, iq4_xs.

#include "qgen/tensor/block_format.h"
#include "qgen/tensor/convert.h"
#include "tensor/blocks.h"

namespace qgen {
namespace {

constexpr std::array<float, 16> kIq4Values{-127, -104, -83, -65, -49, -35, -22, -10,
                                           1,    13,   25,  38,  53,  69,  89,  113};

/// dst[32] = scale times the values that 16 bytes name, low nibbles first.
void look_up(float scale, const std::uint8_t* q, float* dst) noexcept {
  std::array<float, 16> values;
  for (std::size_t i = 0; i < 16; ++i) values[i] = scale * kIq4Values[i];
  for (std::size_t i = 0; i < 16; ++i) {
    dst[i] = values[q[i] & 0xF];
    dst[i + 16] = values[q[i] >> 4];
  }
}

}  // namespace

void dequantize_iq4_nl(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockIq4Nl>(src, n, dst, [](const BlockIq4Nl& block, float* out) {
    look_up(f16_to_f32(block.d), block.q.data(), out);
  });
}

void dequantize_iq4_xs(const std::byte* src, std::int64_t n, float* dst) noexcept {
  read_blocks<BlockIq4Xs>(src, n, dst, [](const BlockIq4Xs& block, float* out) {
    const float d = f16_to_f32(block.d);
    for (std::size_t s = 0; s < 8; ++s) {
      const int low = block.scales_low[s / 2] >> (4 * (s % 2)) & 0xF;
      const int high = block.scales_high >> (2 * s) & 3;
      look_up(d * static_cast<float>((low | high << 4) - 32), block.q.data() + 16 * s, out + 32 * s);
    }
  });
}

}  // namespace qgen
