// Any bytes as the earlier report that --bench-compare reads.

#include <cstdint>
#include <string>
#include <string_view>

#include "cli/bench/row.h"
#include "parts.h"
#include "qgen/base/error.h"

namespace {

qgen::cli::BenchReport make_report() {
  qgen::cli::BenchRow prefill, decode;
  prefill.mode = decode.mode = "kv";
  prefill.n_prompt = 512;
  prefill.samples_ts = {100, 101};
  decode.n_gen = 128;
  decode.n_depth = 64;
  decode.samples_ts = {10};
  qgen::cli::BenchReport report;
  report.rows = {prefill, decode};
  return report;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const qgen::cli::BenchReport report = make_report();
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    const auto lines = qgen::cli::compare_reports(text, "old\x1b.json", report);
    qgen::fuzz::check(lines.size() == report.rows.size());
    for (const std::string& line : lines) qgen::fuzz::check_shown(line);
  } catch (const qgen::Error& error) {
    qgen::fuzz::check(error.kind() == qgen::ErrorKind::file);
    qgen::fuzz::check_shown(error.what());
  }
  return 0;
}
