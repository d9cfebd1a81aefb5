#include "models/rope.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <string>

#include "qgen/base/error.h"
#include "qgen/base/utf8.h"

// inv_freq[i] = theta^(-2i/d), then stretched as the type says. The tables that models were trained with were
// computed in binary32 step by step; so are these, each step rounded once, because at position p the rounding
// of a frequency moves the angle by p times as much.

namespace qgen {
namespace {

constexpr double kDefaultTheta = 10000;

[[noreturn]] void fail(const ModelConfig& config, const std::string& reason,
                       ErrorKind kind = ErrorKind::file) {
  throw Error(kind, config.source + ": " + reason);
}

double needed(const ModelConfig& config, const std::optional<double>& value, const char* key) {
  if (!value) fail(config, std::string(key) + ": missing, rope type " + config.rope.type + " needs it");
  return *value;
}

/// theta^(2i/d) for i in 0..d/2.
std::vector<float> base_periods(const ModelConfig& config, std::int64_t head_dim) {
  const auto theta = static_cast<float>(config.rope.theta == 0 ? kDefaultTheta : config.rope.theta);
  std::vector<float> periods;
  for (std::int64_t i = 0; i < head_dim; i += 2) {
    const float exponent = static_cast<float>(i) / static_cast<float>(head_dim);
    periods.push_back(static_cast<float>(std::pow(double{theta}, double{exponent})));
  }
  return periods;
}

std::vector<float> reciprocals(std::vector<float> values) {
  for (float& value : values) value = 1 / value;
  return values;
}

double original_positions(const ModelConfig& config) {
  const std::int64_t stated = config.rope.original_max_position_embeddings;
  const std::int64_t positions = stated != 0 ? stated : config.max_position_embeddings;
  if (positions == 0)
    fail(config, "original_max_position_embeddings: missing, rope type " + config.rope.type + " needs it");
  return static_cast<double>(positions);
}

/// Every position is divided by factor (Chen et al. 2023, position interpolation).
PlanRope linear(const ModelConfig& config, std::int64_t head_dim) {
  const auto factor = static_cast<float>(needed(config, config.rope.factor, "factor"));
  PlanRope rope{.inv_freq = reciprocals(base_periods(config, head_dim))};
  for (float& frequency : rope.inv_freq) frequency /= factor;
  return rope;
}

double yarn_factor(const ModelConfig& config) {
  if (config.rope.factor) return *config.rope.factor;
  if (config.rope.original_max_position_embeddings == 0 || config.max_position_embeddings == 0) {
    return needed(config, config.rope.factor, "factor");
  }
  return static_cast<double>(config.max_position_embeddings) / original_positions(config);
}

double yarn_scale(const RopeConfig& rope, double factor) {
  const auto term = [&](double mscale) { return factor <= 1 ? 1 : 0.1 * mscale * std::log(factor) + 1; };
  const double mscale = rope.mscale.value_or(0), all_dim = rope.mscale_all_dim.value_or(0);
  if (rope.attention_factor) return *rope.attention_factor;
  return mscale != 0 && all_dim != 0 ? term(mscale) / term(all_dim) : term(1);
}

/// Pairs that turn often within the original context keep their frequency, those that turn less than once are
/// interpolated, a ramp lies between (Peng et al. 2023, YaRN).
PlanRope yarn(const ModelConfig& config, std::int64_t head_dim) {
  constexpr double kBetaFast = 32, kBetaSlow = 1;
  const auto given = [](const std::optional<double>& value, double otherwise) {
    return value.value_or(0) == 0 ? otherwise : *value;
  };
  const double theta = config.rope.theta == 0 ? kDefaultTheta : config.rope.theta;
  const double original = original_positions(config);
  const double factor = yarn_factor(config);
  // The pair that makes `turns` turns within the original context.
  const auto pair_at = [&](double turns) {
    return static_cast<double>(head_dim) * std::log(original / (turns * 2 * std::numbers::pi)) /
           (2 * std::log(theta));
  };
  double low = pair_at(given(config.rope.beta_fast, kBetaFast));
  double high = pair_at(given(config.rope.beta_slow, kBetaSlow));
  if (config.rope.truncate) {
    low = std::floor(low);
    high = std::ceil(high);
  }
  low = std::max(low, 0.0);
  high = std::min(high, static_cast<double>(head_dim - 1));
  if (low == high) high += 0.001;  // the published remedy against a division by zero

  PlanRope rope{.inv_freq = base_periods(config, head_dim),
                .scale = static_cast<float>(yarn_scale(config.rope, factor))};
  for (std::size_t i = 0; i < rope.inv_freq.size(); ++i) {
    const float period = rope.inv_freq[i];
    const float ramp = (static_cast<float>(i) - static_cast<float>(low)) / static_cast<float>(high - low);
    const float kept = 1 - std::clamp(ramp, 0.0f, 1.0f);
    const float interpolated = 1 / (static_cast<float>(factor) * period);
    rope.inv_freq[i] = interpolated * (1 - kept) + 1 / period * kept;
  }
  return rope;
}

/// Long waves are stretched by factor, short ones kept, those between are blended (Llama 3.1).
PlanRope llama3(const ModelConfig& config, std::int64_t head_dim) {
  const auto factor = static_cast<float>(needed(config, config.rope.factor, "factor"));
  const double low = needed(config, config.rope.low_freq_factor, "low_freq_factor");
  const double high = needed(config, config.rope.high_freq_factor, "high_freq_factor");
  if (high <= low) fail(config, "high_freq_factor: a number above low_freq_factor expected");
  const double original = original_positions(config);

  PlanRope rope{.inv_freq = reciprocals(base_periods(config, head_dim))};
  for (float& frequency : rope.inv_freq) {
    const float wave = static_cast<float>(2 * std::numbers::pi) / frequency;
    if (wave < static_cast<float>(original / high)) continue;
    if (wave > static_cast<float>(original / low)) {
      frequency /= factor;
    } else {
      const float smooth =
          (static_cast<float>(original) / wave - static_cast<float>(low)) / static_cast<float>(high - low);
      frequency = (1 - smooth) * frequency / factor + smooth * frequency;
    }
  }
  return rope;
}

PlanRope plain(const ModelConfig& config, std::int64_t head_dim) {
  if (config.rope.factor.value_or(1) != 1) {
    fail(config, "rope_type: linear, yarn or llama3 expected beside a factor, default found");
  }
  return {.inv_freq = reciprocals(base_periods(config, head_dim))};
}

PlanRope compute(const ModelConfig& config, std::int64_t head_dim) {
  const std::string& type = config.rope.type;
  if (type == "default") return plain(config, head_dim);
  if (type == "linear") return linear(config, head_dim);
  if (type == "yarn") return yarn(config, head_dim);
  if (type == "llama3") return llama3(config, head_dim);
  fail(config, "rope_type " + shorten(type) + " is not supported, only default, linear, llama3 and yarn",
       ErrorKind::unsupported);
}

void divide(const ModelConfig& config, std::vector<float>& frequencies) {
  const std::vector<float>& divisors = config.rope.frequency_divisors;
  if (divisors.empty()) return;
  if (divisors.size() != frequencies.size()) {
    fail(config, "rope frequencies: " + std::to_string(frequencies.size()) + " divisors expected, " +
                     std::to_string(divisors.size()) + " found");
  }
  for (std::size_t i = 0; i < frequencies.size(); ++i) frequencies[i] /= divisors[i];
}

}  // namespace

PlanRope make_rope(const ModelConfig& config, std::int64_t head_dim) {
  PlanRope rope = compute(config, head_dim);
  divide(config, rope.inv_freq);
  if (config.rope.adjacent_pairs) rope.pairs = RopePairs::adjacent;
  const bool finite = std::ranges::all_of(rope.inv_freq, [](float f) { return std::isfinite(f); });
  if (!finite || !std::isfinite(rope.scale)) {
    fail(config, "the rope settings (" + config.rope.type + ") give frequencies that are not finite");
  }
  return rope;
}

std::int64_t rope_context(const ModelConfig& config, std::int64_t max_position_embeddings) {
  const RopeConfig& rope = config.rope;
  if (rope.type != "yarn" || rope.original_max_position_embeddings == 0) return max_position_embeddings;
  // Published advice is to add the YaRN block to a config that still states the original number of positions.
  constexpr double kMax = std::int64_t{1} << 31;
  const double stretched = static_cast<double>(rope.original_max_position_embeddings) * yarn_factor(config);
  return std::max(max_position_embeddings, static_cast<std::int64_t>(std::min(stretched, kMax)));
}

}  // namespace qgen
