#include "qgen/sample/sampler.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <limits>
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

/// Copies logits and looks for what is no number to choose by.
struct Scan {
  bool nan_or_inf = false, minus_inf = false;
};
Scan copy_and_scan(std::span<const float> from, std::span<float> to) noexcept {
  // As wide as a logit, which g++ can vectorise.
  std::uint32_t above = 0, below = 0;
  for (std::size_t i = 0; i < from.size(); ++i) {
    to[i] = from[i];
    above |= from[i] < kInfinity ? 0u : 1u;
    below |= from[i] == -kInfinity ? 1u : 0u;
  }
  return {above != 0, below != 0};
}

std::string name_nan_or_inf(std::span<const float> logits, std::size_t first_id) {
  std::size_t i = 0;
  while (logits[i] < kInfinity) ++i;
  return "logit " + std::to_string(first_id + i) + (std::isnan(logits[i]) ? " is nan" : " is inf");
}

/// Of the largest logits the one with the lowest id.
TokenId best_of(const Candidates& candidates) {
  const std::span<const float> logits = candidates.logits();
  const auto at = std::find(logits.begin(), logits.end(), candidates.top());
  return candidates.ids()[static_cast<std::size_t>(at - logits.begin())];
}

}  // namespace

struct Sampler::Impl {
  explicit Impl(const SamplingOptions& options)
      : chain(make_chain(options)), greedy(options.temperature == 0), seed(options.seed) {}

  /// Fills `candidates` with the allowed ids whose logit is above -inf; gives the problem, if there is one.
  std::string gather(std::span<const float> logits);
  /// The first candidate, in ascending order of ids, at which the summed probability exceeds `uniform`.
  TokenId draw(double uniform);
  /// Lists the allowed ids of a vocabulary.
  void list_ids(std::size_t vocabulary);

  std::vector<std::unique_ptr<SamplerStep>> chain;
  bool greedy;
  std::uint64_t seed;
  std::vector<IdRange> allowed{{0, std::numeric_limits<std::size_t>::max()}};
  std::vector<TokenId> ids;  // what is allowed of `listed`
  std::size_t listed = 0;    // ids of the vocabulary; 0: not known yet
  Candidates candidates;
  std::vector<double> block_sums;
};

void Sampler::Impl::list_ids(std::size_t vocabulary) {
  ids.clear();
  for (const IdRange range : allowed) {
    for (std::size_t id = range.begin; id < std::min(range.end, vocabulary); ++id) {
      ids.push_back(static_cast<TokenId>(id));
    }
  }
  listed = vocabulary;
}

std::string Sampler::Impl::gather(std::span<const float> logits) {
  if (listed != logits.size()) list_ids(logits.size());
  std::span<float> to = candidates.begin(ids);
  bool minus_inf = false;
  for (const IdRange range : allowed) {
    const std::size_t end = std::min(range.end, logits.size());
    if (range.begin >= end) break;
    const auto part = logits.subspan(range.begin, end - range.begin);
    const Scan scan = copy_and_scan(part, to.first(part.size()));
    if (scan.nan_or_inf) return name_nan_or_inf(part, range.begin);
    minus_inf |= scan.minus_inf;
    to = to.subspan(part.size());
  }
  if (minus_inf) candidates.keep_from(std::numeric_limits<float>::lowest());
  if (candidates.size() == 0) return "no logit is above -inf";
  candidates.find_top();
  return "";
}

TokenId Sampler::Impl::draw(double uniform) {
  // Sums of blocks first: one sum over all would be a long chain of additions.
  constexpr std::size_t kBlock = 256;
  const std::span<const float> logits = candidates.logits();
  const auto block_at = [&](std::size_t b) {
    return logits.subspan(b * kBlock, std::min(kBlock, logits.size() - b * kBlock));
  };
  std::array<float, kBlock> weights;
  const auto weigh = [&](std::size_t b) {
    const std::span<const float> in = block_at(b);
    const std::span<float> out = std::span<float>(weights).first(in.size());
    exp_weights(in, candidates.top(), out);
    return out;
  };
  block_sums.clear();
  double total = 0;
  for (std::size_t b = 0; b * kBlock < logits.size(); ++b) {
    block_sums.push_back(sum(weigh(b)));
    total += block_sums.back();
  }
  // The sums below repeat those above, so they exceed uniform * total < total in the last block at latest.
  const double target = uniform * total;
  double before = 0;
  std::size_t block = 0;
  while (before + block_sums[block] <= target) before += block_sums[block++];
  const std::span<const float> inside = weigh(block);
  // A sum in another order may fall short of the block's by a last bit; then it is the last that weighs.
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] == 0) continue;
    chosen = i;
    if ((before += static_cast<double>(inside[i])) > target) break;
  }
  return candidates.ids()[block * kBlock + chosen];
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
  impl_->listed = 0;
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
