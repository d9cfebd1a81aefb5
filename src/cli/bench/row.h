#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qgen::cli {

/// What was measured in one test of one mode. Rates are tokens per second.
struct BenchRow {
  std::string mode;
  std::int64_t n_prompt = 0;  ///< tokens of a prefill test, else 0
  std::int64_t n_gen = 0;     ///< tokens of a decode test, else 0
  std::int64_t n_depth = 0;   ///< tokens in front of a decode test
  int n_threads = 0;
  std::string model_type;
  std::int64_t model_size = 0;  ///< bytes of weights
  std::string device;
  double load_s = 0;
  std::vector<double> samples_ts;  ///< one for each repetition
  /// What the machine could do right after each repetition: bytes read or operations per second; empty where
  /// that is not measured.
  std::vector<double> limits;
  std::optional<double> first_token_ms;                ///< median, tokenizer and sampler included
  std::optional<std::int64_t> bytes_per_token;         ///< weights and cache that a decode step reads
  std::optional<double> read_gb_s, bandwidth_percent;  ///< percent: of the limit at that time, median
  std::optional<double> gflops, compute_percent;       ///< likewise
  std::int64_t peak_rss = 0;                           ///< bytes, of the program so far

  /// "pp512" or "tg128".
  [[nodiscard]] std::string test() const {
    return n_prompt > 0 ? "pp" + std::to_string(n_prompt) : "tg" + std::to_string(n_gen);
  }
};

[[nodiscard]] double mean(const std::vector<double>& values);
/// Sample standard deviation; 0 for fewer than two values.
[[nodiscard]] double deviation(const std::vector<double>& values);
[[nodiscard]] double median(std::vector<double> values);

/// Everything a report shows.
struct BenchReport {
  std::string model;
  std::int64_t parameters = 0;
  std::vector<BenchRow> rows;
  /// Limits of the machine, medians of what was measured between the repetitions; 0: not measured.
  double read_bytes_per_second = 0, peak_ops_per_second = 0;
};

/// `format` is md, csv, json or jsonl.
[[nodiscard]] std::string format_report(const BenchReport& report, std::string_view format);

/// A bar for each row, as an SVG picture.
[[nodiscard]] std::string plot_report(const BenchReport& report);

/// What changed against `old_json`, a report made with -o json: one line for each test that both have, which
/// says whether the difference of the means is beyond the noise. Throws Error{file} naming `source`.
[[nodiscard]] std::vector<std::string> compare_reports(std::string_view old_json, const std::string& source,
                                                       const BenchReport& report);

}  // namespace qgen::cli
