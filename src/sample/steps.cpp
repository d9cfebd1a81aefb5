#include "sample/steps.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>

#include "sample/border.h"
#include "sample/softmax.h"

namespace qgen {
namespace {

/// More than any vocabulary or text holds: as good as no limit on a count.
constexpr double kManyTokens = 1e18;

/// Logits stay finite, whatever a penalty or a temperature multiplies them by.
float bounded(float logit) noexcept {
  constexpr float kMost = std::numeric_limits<float>::max();
  return std::clamp(logit, -kMost, kMost);
}

/// Repetition (Keskar et al. 2019, CTRL): positive logits of seen tokens are divided by the penalty, others
/// multiplied. Then presence and frequency as OpenAI's interface has them: subtracted once, and once per
/// occurrence.
class PenaltiesStep final : public SamplerStep {
 public:
  static StepEntry entry() {
    using O = SamplingOptions;
    return {
        "penalties",
        true,
        {{"repetition-penalty",
          {"repeat-penalty"},
          "repetition_penalty",
          "divide (or, below 0, multiply) the logit of each token that prompt or reply already holds; 1: off",
          0.01,
          100,
          &O::repetition_penalty},
         {"presence-penalty",
          {},
          "",
          "subtract from the logit of each token that the reply already holds; 0: off",
          -2,
          2,
          &O::presence_penalty},
         {"frequency-penalty",
          {},
          "",
          "subtract for each time that the reply already holds a token; 0: off",
          -2,
          2,
          &O::frequency_penalty},
         {"penalty-window",
          {"repeat-last-n"},
          "",
          "how many of the last tokens the penalties look at; -1: all, 0: off",
          -1,
          kManyTokens,
          &O::penalty_window}},
        make};
  }
  static std::unique_ptr<SamplerStep> make(const SamplingOptions& o) {
    const bool off = o.repetition_penalty == 1 && o.presence_penalty == 0 && o.frequency_penalty == 0;
    return off || o.penalty_window == 0 ? nullptr : std::make_unique<PenaltiesStep>(o);
  }

  explicit PenaltiesStep(const SamplingOptions& o)
      : repetition_(static_cast<float>(o.repetition_penalty)),
        presence_(static_cast<float>(o.presence_penalty)),
        frequency_(static_cast<float>(o.frequency_penalty)),
        window_(o.penalty_window < 0 ? std::numeric_limits<std::uint64_t>::max()
                                     : static_cast<std::uint64_t>(o.penalty_window)) {}

  void apply(Candidates& candidates, const SampleContext& context) override {
    count(candidates, context);
    const std::span<const TokenId> ids = candidates.ids();
    const std::span<float> logits = candidates.logits();
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const std::uint32_t mark = marks_[static_cast<std::size_t>(ids[i])];
      if (mark == 0) continue;
      float& logit = logits[i];
      logit = logit < 0 ? logit * repetition_ : logit / repetition_;
      const std::uint32_t replies = mark - 1;
      if (replies > 0) logit -= static_cast<float>(replies) * frequency_ + presence_;
      logit = bounded(logit);
    }
    candidates.find_top();
  }

 private:
  /// marks_[id]: 0 for a token not seen, else one more than its occurrences in the reply. Ids that are no
  /// candidates, whatever their value, count nowhere.
  void count(const Candidates& candidates, const SampleContext& context) {
    marks_.assign(static_cast<std::size_t>(candidates.ids().back()) + 1, 0);
    const auto in_reply = std::min<std::uint64_t>(window_, context.reply.size());
    const auto in_prompt = std::min<std::uint64_t>(window_ - in_reply, context.prompt.size());
    for (const TokenId id : context.prompt.last(in_prompt)) {
      if (is_marked(id)) marks_[static_cast<std::size_t>(id)] = 1;
    }
    for (const TokenId id : context.reply.last(in_reply)) {
      if (!is_marked(id)) continue;
      std::uint32_t& mark = marks_[static_cast<std::size_t>(id)];
      mark = std::max(mark, 1u) + 1;
    }
  }
  [[nodiscard]] bool is_marked(TokenId id) const noexcept {
    return id >= 0 && static_cast<std::size_t>(id) < marks_.size();
  }

  float repetition_, presence_, frequency_;
  std::uint64_t window_;
  std::vector<std::uint32_t> marks_;
};

/// Divides every logit.
class TemperatureStep final : public SamplerStep {
 public:
  static StepEntry entry() {
    using O = SamplingOptions;
    return {"temperature",
            false,
            {{"temperature",
              {"temp"},
              "temperature",
              "divide the logits: below 1 is more certain, above 1 more varied; 0: always the best token",
              0,
              1000,
              &O::temperature}},
            make};
  }
  static std::unique_ptr<SamplerStep> make(const SamplingOptions& o) {
    return o.temperature == 0 || o.temperature == 1 ? nullptr
                                                    : std::make_unique<TemperatureStep>(o.temperature);
  }
  explicit TemperatureStep(double temperature) : temperature_(temperature) {}

  void apply(Candidates& candidates, const SampleContext&) override {
    const auto divisor = static_cast<float>(temperature_);
    const float top = candidates.top();
    if (std::isfinite(top / divisor)) {
      candidates.map([divisor](float logit) { return bounded(logit / divisor); });
    } else {
      // So cold that the largest would overflow: measured from the largest, which becomes 0.
      candidates.map([top, this](float logit) {
        const double below = static_cast<double>(logit) - static_cast<double>(top);
        return bounded(static_cast<float>(std::max(below / temperature_, -1e38)));
      });
    }
  }

 private:
  double temperature_;
};

/// Keeps the k largest (Fan et al. 2018); all that equal the k-th stay, as in Hugging Face's warper.
class TopKStep final : public SamplerStep {
 public:
  static StepEntry entry() {
    using O = SamplingOptions;
    return {"top_k",
            false,
            {{"top-k", {}, "top_k", "keep the K best tokens; 0 or -1: off", -1, kManyTokens, &O::top_k}},
            make};
  }
  static std::unique_ptr<SamplerStep> make(const SamplingOptions& o) {
    return o.top_k <= 0 ? nullptr : std::make_unique<TopKStep>(o.top_k);
  }
  explicit TopKStep(std::int64_t k) : k_(static_cast<std::uint64_t>(k)) {}

  void apply(Candidates& candidates, const SampleContext&) override {
    if (k_ >= candidates.size()) return;
    // With so many blocks there is a bound that drops most of the vocabulary at once.
    if (k_ <= candidates.size() / kBlock) candidates.keep_from(kth_of_blocks(candidates.logits()));
    const auto ones = [](std::span<const float>, std::span<float> mass) {
      std::fill(mass.begin(), mass.end(), 1.0f);
    };
    const auto k = static_cast<double>(k_);
    const Border border =
        finder_.find(candidates.logits(), ones, [k](double before, double) { return before < k; });
    candidates.keep_from(border.logit);
  }

 private:
  static constexpr std::size_t kBlock = 64;

  /// A lower bound of the k-th largest: the k-th largest of the maxima of blocks.
  float kth_of_blocks(std::span<const float> logits) {
    maxima_.clear();
    for (std::size_t begin = 0; begin < logits.size(); begin += kBlock) {
      maxima_.push_back(extremes(logits.subspan(begin, std::min(kBlock, logits.size() - begin))).high);
    }
    const auto kth = maxima_.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
    std::nth_element(maxima_.begin(), kth, maxima_.end(), std::greater<>());
    return *kth;
  }

  std::uint64_t k_;
  std::vector<float> maxima_;
  BorderFinder finder_;
};

/// Keeps the smallest set of most probable tokens whose probabilities sum to at least p (Holtzman et al.
/// 2020). Of equal ones at the border the lowest ids stay.
class TopPStep final : public SamplerStep {
 public:
  static StepEntry entry() {
    using O = SamplingOptions;
    return {"top_p",
            false,
            {{"top-p",
              {},
              "top_p",
              "keep the fewest best tokens whose probabilities sum to P; 1: off",
              0,
              1,
              &O::top_p}},
            make};
  }
  static std::unique_ptr<SamplerStep> make(const SamplingOptions& o) {
    return o.top_p == 1 ? nullptr : std::make_unique<TopPStep>(o.top_p);
  }
  explicit TopPStep(double p) : left_out_(static_cast<float>(1 - p)) {}

  void apply(Candidates& candidates, const SampleContext&) override {
    const float top = candidates.top();
    const auto weigh = [top](std::span<const float> logits, std::span<float> mass) {
      exp_weights(logits, top, mass);
    };
    // A token stays unless it and all less probable ones together are within 1 - p. Compared as floats, as
    // Hugging Face does, so that sums such as 0.3 + 0.4 meet 0.7 on the border.
    const auto stays = [this](double before, double total) {
      return static_cast<float>((total - before) / total) > left_out_;
    };
    // Where a text makes sense, the border is among the few tokens that are near the best.
    const float near = top - kNear;
    const Masses sums = masses(candidates.logits(), top, near);
    if (!stays(sums.near, sums.all)) candidates.keep_from(near);
    const Border border = finder_.find(candidates.logits(), weigh, stays, sums.all);
    keep_to(candidates, border, [&](std::size_t equals) {
      const auto weight = static_cast<double>(exp_nonpositive(border.logit - top));
      return stays(border.before + static_cast<double>(equals) * weight, border.total);
    });
  }

 private:
  static constexpr float kNear = 12;

  /// Keeps what is above the border and, of those on it, the first, and as many more as `stays` says.
  template <class Stays>
  static void keep_to(Candidates& candidates, const Border& border, const Stays& stays) {
    candidates.keep_from(border.logit);
    const std::span<const float> logits = candidates.logits();
    const auto equals = static_cast<std::size_t>(std::count(logits.begin(), logits.end(), border.logit));
    std::size_t kept = 1;
    while (kept < equals && stays(kept)) ++kept;
    if (kept == equals) return;
    candidates.keep_if([&](float logit) {
      const bool keep = logit != border.logit || kept > 0;
      if (logit == border.logit && keep) --kept;
      return keep;
    });
  }

  float left_out_;
  BorderFinder finder_;
};

/// Keeps tokens that are at least p times as probable as the most probable one (Nguyen et al. 2024).
class MinPStep final : public SamplerStep {
 public:
  static StepEntry entry() {
    using O = SamplingOptions;
    return {"min_p",
            false,
            {{"min-p",
              {},
              "min_p",
              "keep tokens at least P times as probable as the best; 0: off",
              0,
              1,
              &O::min_p}},
            make};
  }
  static std::unique_ptr<SamplerStep> make(const SamplingOptions& o) {
    return o.min_p == 0 ? nullptr : std::make_unique<MinPStep>(o.min_p);
  }
  explicit MinPStep(double p) : log_p_(static_cast<float>(std::log(p))) {}

  void apply(Candidates& candidates, const SampleContext&) override {
    const float top = candidates.top();
    candidates.keep_if([this, top](float logit) { return logit - top >= log_p_; });
  }

 private:
  float log_p_;
};

}  // namespace

std::span<const StepEntry> step_entries() {
  static const std::vector<StepEntry> entries{PenaltiesStep::entry(), TemperatureStep::entry(),
                                              TopKStep::entry(), TopPStep::entry(), MinPStep::entry()};
  return entries;
}

}  // namespace qgen
