#include "sample/border.h"

#include <algorithm>

#include "sample/softmax.h"

namespace qgen {

Border BorderFinder::find(std::span<const float> logits, const Mass& mass, const GoesOn& goes_on,
                          std::optional<double> total) {
  Border border;
  border.total = total.value_or(0);
  bin_of_.resize(logits.size());
  inside_.resize(logits.size());
  for (bool first = true;; first = false) {
    fill_bins(logits, mass);
    if (first && !total) {
      for (const double m : bins_) border.total += m;
    }
    std::size_t at = 0;
    while (at + 1 < bins_.size() && goes_on(border.before + bins_[at], border.total)) {
      border.before += bins_[at++];
    }
    // From the second round on this works in place: what is kept never overtakes what is read.
    std::size_t kept = 0;
    for (std::size_t i = 0; i < logits.size(); ++i) {
      if (bin_of_[i] == at) inside_[kept++] = logits[i];
    }
    logits = std::span<const float>(inside_).first(kept);
    const Extremes range = extremes(logits);
    border.logit = range.high;
    if (range.low == range.high) return border;
  }
}

void BorderFinder::fill_bins(std::span<const float> logits, const Mass& mass) {
  const Extremes range = extremes(logits);
  const auto high = static_cast<double>(range.high);
  const double width = high - static_cast<double>(range.low);
  const auto last = static_cast<double>(bins_.size() - 1);
  // The smallest logit lands in the last bin, so that every round parts it from the largest.
  const double scale = width > 0 ? static_cast<double>(bins_.size()) / width : 0;
  constexpr std::size_t kBlock = 256;
  std::array<float, kBlock> block_mass;
  bins_.fill(0);
  for (std::size_t begin = 0; begin < logits.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, logits.size() - begin);
    const float* in = logits.data() + begin;
    std::uint16_t* bin = bin_of_.data() + begin;
    mass({in, count}, {block_mass.data(), count});
    for (std::size_t i = 0; i < count; ++i) {
      const double depth = (high - static_cast<double>(in[i])) * scale;
      bin[i] = static_cast<std::uint16_t>(static_cast<std::int32_t>(depth < last ? depth : last));
    }
    for (std::size_t i = 0; i < count; ++i) bins_[bin[i]] += static_cast<double>(block_mass[i]);
  }
}

}  // namespace qgen
