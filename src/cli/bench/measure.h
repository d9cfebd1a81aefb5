#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/bench/row.h"
#include "cli/run/model.h"
#include "qgen/engine/engine.h"
#include "qgen/sample/sampler.h"

namespace qgen::cli {

/// What to measure.
struct BenchPlan {
  std::int64_t prompt_tokens = 512;
  std::int64_t new_tokens = 128;
  bool fixed_prompt = false, fixed_new = false;  ///< sizes that the user gave are never made smaller
  std::vector<std::int64_t> depths{0};
  std::int64_t repetitions = 5;
  double seconds_per_test =
      60;  ///< about; default sizes shrink to the power of two that fits, and rows say so
};

/// Measures one mode of a loaded engine.
class BenchRunner {
 public:
  /// Measures a limit of the machine; nothing where there is no way to.
  using MeasureLimit = std::function<std::optional<double>()>;
  struct Limits {
    MeasureLimit arithmetic, reading;
  };

  /// The engine must outlive the runner. After each repetition the limit that belongs to it is measured,
  /// since the speed of shared machines changes from minute to minute.
  BenchRunner(const Engine& engine, Mode mode, const SamplingOptions& sampling, const BenchPlan& plan,
              Limits limits);

  /// A row with samples and first_token_ms; nothing if the user interrupted, or for a size of zero. Throws
  /// Error where the model fails.
  [[nodiscard]] std::optional<BenchRow> prefill();
  [[nodiscard]] std::optional<BenchRow> decode(std::int64_t depth);

 private:
  struct Sample {
    double seconds = 0;  ///< of everything, for the time budget
    double rate = 0;     ///< tokens per second
    double first_token_ms = 0;
  };
  struct Test {
    std::int64_t prompt = 0, fresh = 0;
  };
  [[nodiscard]] std::optional<Sample> run(const Test& test);
  template <typename MakeTest>
  std::optional<BenchRow> measure(std::int64_t size, bool fixed, double growth, MakeTest make_test,
                                  const MeasureLimit& limit);

  const Engine& engine_;
  Mode mode_;
  SamplingOptions sampling_;
  BenchPlan plan_;
  Limits limits_;
};

}  // namespace qgen::cli
