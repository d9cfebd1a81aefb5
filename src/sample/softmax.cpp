#include "sample/softmax.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <numeric>

namespace qgen {

void exp_weights(std::span<const float> logits, float top, std::span<float> weights) noexcept {
  const std::size_t n = logits.size();
  const float* in = logits.data();
  float* out = weights.data();
  for (std::size_t i = 0; i < n; ++i) out[i] = exp_nonpositive(in[i] - top);
}

double sum(std::span<const float> values) noexcept {
  constexpr std::size_t kLanes = 8;
  std::array<double, kLanes> lanes{};
  const std::size_t whole = values.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) lanes[lane] += static_cast<double>(values[i + lane]);
  }
  return std::accumulate(values.begin() + static_cast<std::ptrdiff_t>(whole), values.end(),
                         std::accumulate(lanes.begin(), lanes.end(), 0.0),
                         [](double total, float value) { return total + static_cast<double>(value); });
}

Masses masses(std::span<const float> logits, float top, float limit) noexcept {
  constexpr std::size_t kBlock = 256;
  std::array<float, kBlock> weights;
  Masses result;
  for (std::size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, logits.size() - begin);
    const std::span<const float> in = logits.subspan(begin, count);
    const std::span<float> out = std::span<float>(weights).first(count);
    exp_weights(in, top, out);
    result.all += sum(out);
    for (std::size_t i = 0; i < count; ++i) weights[i] = in[i] >= limit ? weights[i] : 0.0f;
    result.near += sum(out);
  }
  return result;
}

Extremes extremes(std::span<const float> values) noexcept {
  // Independent lanes: a single running minimum would be one long chain of dependent comparisons.
  constexpr std::size_t kLanes = 32;
  std::array<float, kLanes> low, high;
  low.fill(values[0]);
  high.fill(values[0]);
  const std::size_t whole = values.size() / kLanes * kLanes;
  for (std::size_t i = 0; i < whole; i += kLanes) {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const float value = values[i + lane];
      low[lane] = value < low[lane] ? value : low[lane];
      high[lane] = value > high[lane] ? value : high[lane];
    }
  }
  Extremes result{*std::min_element(low.begin(), low.end()), *std::max_element(high.begin(), high.end())};
  for (std::size_t i = whole; i < values.size(); ++i) {
    result.low = std::min(result.low, values[i]);
    result.high = std::max(result.high, values[i]);
  }
  return result;
}

}  // namespace qgen
