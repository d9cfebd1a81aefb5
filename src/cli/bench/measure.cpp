#include "cli/bench/measure.h"

#include <algorithm>
#include <utility>

#include "cli/bench/workload.h"
#include "cli/io/format.h"
#include "cli/io/signals.h"
#include "cli/run/reply.h"
#include "qgen/base/error.h"
#include "qgen/base/stopwatch.h"
#include "qgen/generate/generate.h"

namespace qgen::cli {
BenchRunner::BenchRunner(const Engine& engine, Mode mode, const SamplingOptions& sampling,
                         const BenchPlan& plan, Limits limits)
    : engine_(engine), mode_(mode), sampling_(sampling), plan_(plan), limits_(std::move(limits)) {}

/// One run as a user would have it: a fresh session, the text tokenised, tokens sampled and turned into text.
/// With `fresh` tokens the rate is that of the steps after the first token, without it that of the prompt.
std::optional<BenchRunner::Sample> BenchRunner::run(const Test& test) {
  const std::string text = workload_text(engine_.tokenizer(), test.prompt);
  Sampler sampler(sampling_);
  GenerateOptions options;
  options.max_tokens = test.fresh + 1;
  options.ignore_end = true;
  GenerateHooks hooks;
  hooks.cancel = &interrupted();
  hooks.sink = [](const TokenEvent& /*event*/) { return true; };

  const Stopwatch watch;
  const std::vector<TokenId> prompt = workload_tokens(engine_.tokenizer(), text, test.prompt);
  const double tokenizing = watch.seconds();
  Session session = engine_.new_session(recomputes(mode_));
  const GenerateResult result = generate(session, engine_, sampler, prompt, options, hooks);
  const double seconds = watch.seconds();

  if (result.stop == StopReason::interrupted) return std::nullopt;
  if (result.stop != StopReason::length) {
    throw Error(result.problem_kind, result.problem.empty()
                                         ? "the run ended early (" + std::string(to_string(result.stop)) + ")"
                                         : result.problem);
  }
  const Timings& timings = result.timings;
  const std::optional<double> speed = test.fresh > 0 ? rate(timings.decode_steps, timings.decode_s)
                                                     : rate(timings.prefill_tokens, timings.prefill_s);
  return Sample{seconds, speed.value_or(0), (tokenizing + timings.first_token_s) * 1e3};
}

/// Finds the size by doubling while one run more than the repetitions would still be within the time,
/// `growth` being how much longer twice the size may take. The last of these runs, of the very size that is
/// measured, is the warm-up.
template <typename MakeTest>
std::optional<BenchRow> BenchRunner::measure(std::int64_t size, bool fixed, double growth, MakeTest make_test,
                                             const MeasureLimit& limit) {
  if (size <= 0) return std::nullopt;
  const auto runs = static_cast<double>(plan_.repetitions + 1);
  std::int64_t n = fixed ? size : 1;
  std::optional<Sample> warm_up = run(make_test(n));
  while (warm_up && n < size && warm_up->seconds * growth * runs <= plan_.seconds_per_test) {
    n = std::min(2 * n, size);
    warm_up = run(make_test(n));
  }
  if (!warm_up) return std::nullopt;

  BenchRow row;
  row.mode = kModeWords[static_cast<std::size_t>(mode_)];
  const Test test = make_test(n);
  (test.fresh > 0 ? row.n_gen : row.n_prompt) = n;
  std::vector<double> first;
  for (std::int64_t i = 0; i < plan_.repetitions; ++i) {
    const std::optional<Sample> sample = run(test);
    if (!sample) return std::nullopt;
    row.samples_ts.push_back(sample->rate);
    first.push_back(sample->first_token_ms);
    if (const std::optional<double> most = limit()) row.limits.push_back(*most);
  }
  if (test.fresh == 0) row.first_token_ms = median(first);
  row.peak_rss = peak_memory();
  return row;
}

std::optional<BenchRow> BenchRunner::prefill() {
  constexpr double kGrowth = 2;
  return measure(
      plan_.prompt_tokens, plan_.fixed_prompt, kGrowth,
      [](std::int64_t n) {
        return Test{n, 0};
      },
      limits_.arithmetic);
}

std::optional<BenchRow> BenchRunner::decode(std::int64_t depth) {
  // Without a cache, twice the tokens are up to four times the work.
  const double growth = recomputes(mode_) ? 4 : 2;
  const std::int64_t prompt = std::max<std::int64_t>(depth, 1);
  auto row = measure(
      plan_.new_tokens, plan_.fixed_new, growth,
      [prompt](std::int64_t n) {
        return Test{prompt, n};
      },
      limits_.reading);
  if (row) row->n_depth = depth;
  return row;
}

}  // namespace qgen::cli
