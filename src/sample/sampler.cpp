#include "qgen/sample/sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "sample/candidates.h"
#include "sample/philox.h"
#include "sample/softmax.h"
#include "sample/steps.h"

namespace qgen {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// Ids from begin to before end.
struct IdRange {
  std::size_t begin = 0, end = 0;
};

/// One branch for the whole vocabulary instead of one a logit.
bool any_nan_or_inf(std::span<const float> logits) noexcept {
  bool found = false;
  for (const float logit : logits) found |= !(logit < kInfinity);
  return found;
}

std::string name_nan_or_inf(std::span<const float> logits, std::size_t first_id) {
  std::size_t i = 0;
  while (logits[i] < kInfinity) ++i;
  return "logit " + std::to_string(first_id + i) + (std::isnan(logits[i]) ? " is nan" : " is inf");
}

/// Of the largest logits the one with the lowest id.
TokenId best_of(const Candidates& candidates) {
  const float top = extremes(candidates.logits).high;
  const auto at = std::find(candidates.logits.begin(), candidates.logits.end(), top);
  return candidates.ids[static_cast<std::size_t>(at - candidates.logits.begin())];
}

}  // namespace

struct Sampler::Impl {
  explicit Impl(const SamplingOptions& options)
      : chain(make_chain(options)), greedy(options.temperature == 0), seed(options.seed) {}

  /// Fills `candidates` with the allowed ids whose logit is above -inf; gives the problem, if there is one.
  std::string gather(std::span<const float> logits);
  /// The first candidate, in ascending order of ids, at which the summed probability exceeds `uniform`.
  TokenId draw(double uniform);

  std::vector<std::unique_ptr<SamplerStep>> chain;
  bool greedy;
  std::uint64_t seed;
  std::vector<IdRange> allowed{{0, std::numeric_limits<std::size_t>::max()}};
  Candidates candidates;
  std::vector<float> weights;
};

std::string Sampler::Impl::gather(std::span<const float> logits) {
  candidates.ids.clear();
  candidates.logits.clear();
  for (const IdRange range : allowed) {
    const std::size_t end = std::min(range.end, logits.size());
    if (range.begin >= end) break;
    const auto part = logits.subspan(range.begin, end - range.begin);
    if (any_nan_or_inf(part)) return name_nan_or_inf(part, range.begin);
    candidates.logits.insert(candidates.logits.end(), part.begin(), part.end());
    const std::size_t filled = candidates.ids.size();
    candidates.ids.resize(filled + part.size());
    std::iota(candidates.ids.begin() + static_cast<std::ptrdiff_t>(filled), candidates.ids.end(),
              static_cast<TokenId>(range.begin));
  }
  if (candidates.size() > 0 && extremes(candidates.logits).low == -kInfinity) {
    candidates.keep_if([](float logit) { return logit > -kInfinity; });
  }
  return candidates.size() > 0 ? "" : "no logit is above -inf";
}

TokenId Sampler::Impl::draw(double uniform) {
  weights.resize(candidates.size());
  exp_weights(candidates.logits, extremes(candidates.logits).high, weights);
  double total = 0;
  for (const float weight : weights) total += static_cast<double>(weight);
  // The sum below repeats the one above, so it exceeds uniform * total < total at the last weight at latest.
  const double target = uniform * total;
  double sum = 0;
  std::size_t i = 0;
  while ((sum += static_cast<double>(weights[i])) <= target) ++i;
  return candidates.ids[i];
}

Sampler::Sampler(const SamplingOptions& options) : impl_(std::make_unique<Impl>(options)) {}
Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;

SampleResult Sampler::choose(std::span<const float> logits, const SampleContext& context) {
  std::string problem = impl_->gather(logits);
  if (!problem.empty()) return {-1, std::move(problem)};
  for (const auto& step : impl_->chain) step->apply(impl_->candidates, context);
  if (impl_->greedy) return {best_of(impl_->candidates), ""};
  return {impl_->draw(uniform_at(impl_->seed, context.reply.size())), ""};
}

void Sampler::set_allowed(std::vector<bool> mask) {
  impl_->allowed.clear();
  for (std::size_t id = 0; id < mask.size(); ++id) {
    if (!mask[id]) continue;
    if (impl_->allowed.empty() || impl_->allowed.back().end != id) impl_->allowed.push_back({id, id});
    impl_->allowed.back().end = id + 1;
  }
}

bool Sampler::is_plain_greedy() const noexcept {
  return impl_->greedy && impl_->chain.empty();
}

}  // namespace qgen
