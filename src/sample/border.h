#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace qgen {

/// Where a walk from the largest logit down ends.
struct Border {
  float logit = 0;    ///< the smallest logit that is reached
  double before = 0;  ///< mass of all larger ones
  double total = 0;   ///< mass of all
};

/// Walks logits from the largest down, adding up a mass, until a condition fails: what top-k and top-p want
/// of a sorted vocabulary, without sorting it. Masses are summed in bins of equal width; then only the bin
/// that holds the border is looked at again, more closely. Linear in practice: each round divides the range
/// of logits by the number of bins.
class BorderFinder {
 public:
  /// Writes the mass (>= 0) of each logit.
  using Mass = std::function<void(std::span<const float> logits, std::span<float> mass)>;
  /// Whether the walk goes on to a logit when the larger ones weigh `before` of `total`; once false it stays
  /// false.
  using GoesOn = std::function<bool(double before, double total)>;

  /// `logits`: at least one, all finite. The largest is reached in any case. `total`: the mass of all, where
  /// smaller ones that the walk cannot reach are left out.
  Border find(std::span<const float> logits, const Mass& mass, const GoesOn& goes_on,
              std::optional<double> total = std::nullopt);

 private:
  void fill_bins(std::span<const float> logits, const Mass& mass);

  std::array<double, 2048> bins_{};    // mass of each bin, largest logits first
  std::vector<std::uint16_t> bin_of_;  // of each logit
  std::vector<float> inside_;          // logits of the border's bin
};

}  // namespace qgen
