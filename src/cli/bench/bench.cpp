#include "cli/bench/bench.h"

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>

#include "cli/bench/measure.h"
#include "cli/bench/row.h"
#include "cli/io/format.h"
#include "cli/io/input.h"
#include "cli/io/messages.h"
#include "cli/io/signals.h"
#include "cli/run/model.h"
#include "qgen/base/error.h"
#include "qgen/base/stopwatch.h"
#include "qgen/device/cpu_info.h"

namespace qgen::cli {
namespace {

constexpr std::array kAllModes{Mode::naive, Mode::cache, Mode::fused, Mode::all};

/// Sizes as asked for, the default ones made to fit the context.
BenchPlan make_plan(const BenchOptions& options, std::int64_t context) {
  BenchPlan plan;
  plan.fixed_prompt = options.prompt_tokens.has_value();
  plan.fixed_new = options.new_tokens.has_value();
  if (!options.depths.empty()) plan.depths = options.depths;
  plan.repetitions = options.repetitions;
  const std::int64_t deepest = std::max<std::int64_t>(std::ranges::max(plan.depths), 1);
  plan.prompt_tokens = options.prompt_tokens.value_or(std::min(plan.prompt_tokens, context - 1));
  plan.new_tokens =
      options.new_tokens.value_or(std::clamp<std::int64_t>(context - deepest - 1, 0, plan.new_tokens));
  if (plan.prompt_tokens == 0 && plan.new_tokens == 0) {
    throw Error(ErrorKind::usage,
                "--bench: with no tokens of prompt (-p) and reply (-n) there is nothing to measure");
  }
  const std::int64_t longest = std::max(plan.prompt_tokens + 1, deepest + plan.new_tokens + 1);
  if (longest > context) {
    throw Error(ErrorKind::usage, "--bench: these sizes need a context of " + std::to_string(longest) +
                                      ", the model has " + std::to_string(context));
  }
  return plan;
}

/// Peak of the fastest arithmetic that the processor has for weights of that type.
double peak_for(std::string_view weight_type, const CpuLimits& limits) {
  double peak = limits.f32_ops_per_second;
  if (weight_type != "f32" && weight_type != "f16")
    peak = std::max(peak, limits.bf16_ops_per_second.value_or(0));
  if (weight_type.starts_with('q')) peak = std::max(peak, limits.int8_ops_per_second.value_or(0));
  return peak;
}

/// Median over the repetitions of what was done, `each` a token, in percent of what could have been done.
std::optional<double> percent_of_limits(double each, const BenchRow& row) {
  if (row.limits.empty() || row.limits.size() != row.samples_ts.size()) return std::nullopt;
  std::vector<double> percents;
  for (std::size_t i = 0; i < row.limits.size(); ++i) {
    percents.push_back(100 * each * row.samples_ts[i] / row.limits[i]);
  }
  return median(percents);
}

/// Runs all tests of all modes; stops early, with what there is, when the user interrupts.
class Bench {
 public:
  Bench(const RunOptions& options, Messages& messages) : options_(options), messages_(messages) {}

  BenchReport run() {
    report_.model = model_name(options_.model);
    const std::vector<Mode> modes =
        options_.modes.empty() ? std::vector<Mode>(kAllModes.begin(), kAllModes.end()) : options_.modes;
    for (const Mode mode : modes) {
      if (interrupted()) break;
      load(mode);
      run_mode(mode);
    }
    report_.peak_ops_per_second = median(arithmetic_limits_);
    report_.read_bytes_per_second = median(reading_limits_);
    return std::move(report_);
  }

 private:
  /// Modes with the same kernels share an engine.
  void load(Mode mode) {
    const std::string kernels = kernels_of(mode, options_.model.kernels);
    if (engine_ && kernels == kernels_) return;
    engine_.reset();
    const Stopwatch watch;
    engine_ = load_engine(options_.model, mode, messages_);
    load_s_ = watch.seconds();
    kernels_ = kernels;
    report_.parameters = engine_->parameters();
  }

  /// Reading is that of the very weights, arithmetic the best that any table has; both only where the
  /// processor does the work.
  [[nodiscard]] BenchRunner::Limits limits() const {
    return {[this]() -> std::optional<double> {
              const Executor& executor = engine_->executor();
              if (!executor.description().starts_with("cpu")) return std::nullopt;
              return peak_for(executor.weight_type(), measure_arithmetic(executor.threads(), {}));
            },
            [this] { return engine_->read_weights(); }};
  }

  void run_mode(Mode mode) {
    SamplingChoice choice = options_.sampling;
    if (!choice.seed) choice.seed = 1;
    BenchPlan plan = make_plan(options_.bench, engine_->context());
    // What users run deserves the standard sizes; what they do not run need not take their time.
    plan.seconds_per_test = mode == Mode::all ? 60 : 12;
    BenchRunner runner(*engine_, mode, resolve_sampling(choice, engine_->generation_config()), plan,
                       limits());
    const std::string name(kModeWords[static_cast<std::size_t>(mode)]);
    messages_.progress("mode " + name + ": prefill ...");
    add(runner.prefill());
    for (const std::int64_t depth : plan.depths) {
      if (interrupted()) break;
      messages_.progress("mode " + name + ": decode at depth " + std::to_string(depth) + " ...");
      add(runner.decode(depth));
    }
    messages_.clear_progress();
  }

  void add(std::optional<BenchRow> row) {
    if (!row) return;
    const Executor& executor = engine_->executor();
    row->n_threads = executor.threads();
    row->model_type = engine_->config().model_type;
    row->model_size = executor.weight_bytes_per_token();
    row->device = executor.description();
    row->load_s = load_s_;
    const double speed = median(row->samples_ts);
    if (row->n_prompt > 0) {
      const double operations = 2 * static_cast<double>(engine_->layer_parameters());
      row->gflops = operations * speed / 1e9;
      row->compute_percent = percent_of_limits(operations, *row);
      arithmetic_limits_.insert(arithmetic_limits_.end(), row->limits.begin(), row->limits.end());
    } else if (row->mode == "cache" || row->mode == "all") {
      const std::int64_t positions = row->n_depth + row->n_gen / 2;
      row->bytes_per_token =
          executor.weight_bytes_per_token() + executor.cache_bytes_per_position() * positions;
      const auto bytes = static_cast<double>(*row->bytes_per_token);
      row->read_gb_s = bytes * speed / 1e9;
      row->bandwidth_percent = percent_of_limits(bytes, *row);
      reading_limits_.insert(reading_limits_.end(), row->limits.begin(), row->limits.end());
    }
    report_.rows.push_back(std::move(*row));
  }

  const RunOptions& options_;
  Messages& messages_;
  BenchReport report_;
  std::optional<Engine> engine_;
  std::string kernels_;
  double load_s_ = 0;
  std::vector<double> arithmetic_limits_, reading_limits_;
};

void write_plot(const std::string& path, const std::string& picture) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << picture;
  file.close();
  if (!file) throw Error(ErrorKind::output, "cannot write " + path);
}

}  // namespace

ExitCode run_bench(const RunOptions& options, Output& output) {
  Messages messages(options.show.verbosity());
  const BenchOptions& bench = options.bench;
  // Read first: a wrong path should not cost minutes.
  std::string old_report;
  if (!bench.compare_with.empty()) old_report = read_file(bench.compare_with);

  handle_signals(OnInterrupt::finish_gracefully);
  const BenchReport report = Bench(options, messages).run();
  output.write(format_report(report, bench.format));
  if (!bench.compare_with.empty() && !interrupted()) {
    for (const std::string& line : compare_reports(old_report, bench.compare_with, report)) {
      // The other formats are read by programs, which would stumble over it.
      bench.format == "md" ? void(output.write(line + "\n")) : messages.note(line);
    }
  }
  const ExitCode written = output.finish();
  if (written != ExitCode::finished) return written;
  if (!bench.plot.empty()) write_plot(bench.plot, plot_report(report));
  return interrupted() ? ExitCode::interrupted : ExitCode::finished;
}

}  // namespace qgen::cli
