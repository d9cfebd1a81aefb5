#include "generate/logprobs.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace qgen {
namespace {

struct Ranked {
  float logit;
  TokenId id;
};

bool better(const Ranked& a, const Ranked& b) noexcept {
  return a.logit != b.logit ? a.logit > b.logit : a.id < b.id;
}

double log_sum_exp(std::span<const float> logits) {
  float top = -HUGE_VALF;
  for (const float logit : logits) {
    if (std::isfinite(logit)) top = std::max(top, logit);
  }
  double sum = 0;
  for (const float logit : logits) {
    if (std::isfinite(logit)) sum += std::exp(static_cast<double>(logit) - static_cast<double>(top));
  }
  return static_cast<double>(top) + std::log(sum);
}

/// The best `count` in order. Keeps at most twice as many at a time, halving them when they are too many.
std::vector<Ranked> best_ids(std::span<const float> logits, const std::vector<bool>& allowed,
                             std::size_t count) {
  std::vector<Ranked> best;
  const auto keep_best = [&] {
    if (best.size() <= count) return;
    std::nth_element(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(count - 1), best.end(), better);
    best.resize(count);
  };
  float least =
      -HUGE_VALF;  // what an id must exceed; ids come in ascending order, so equal ones are too late
  const std::size_t rows = count > 0 ? std::min(logits.size(), allowed.size()) : 0;
  for (std::size_t id = 0; id < rows; ++id) {
    if (!(logits[id] > least) || !allowed[id]) continue;
    best.push_back({logits[id], static_cast<TokenId>(id)});
    if (best.size() < 2 * count) continue;
    keep_best();
    least = best[count - 1].logit;
  }
  keep_best();
  std::sort(best.begin(), best.end(), better);
  return best;
}

}  // namespace

TokenLogprobs read_logprobs(std::span<const float> logits, const std::vector<bool>& allowed, TokenId chosen,
                            int alternatives) {
  const double whole = log_sum_exp(logits);
  const auto logprob = [&](TokenId id) {
    return TokenLogprob{id, static_cast<double>(logits[static_cast<std::size_t>(id)]) - whole};
  };
  TokenLogprobs result{logprob(chosen), {}};
  for (const Ranked& ranked : best_ids(logits, allowed, static_cast<std::size_t>(alternatives))) {
    result.top.push_back(logprob(ranked.id));
  }
  return result;
}

}  // namespace qgen
