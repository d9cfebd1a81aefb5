#include <algorithm>
#include <cmath>

#include "cli/bench/row.h"
#include "cli/io/format.h"
#include "qgen/base/error.h"
#include "qgen/base/json.h"
#include "qgen/base/utf8.h"

namespace qgen::cli {
namespace {

/// What identifies a test and what is known of its speed.
struct OldRow {
  std::string test, mode;
  std::int64_t depth = 0;
  std::vector<double> samples;
  std::string setup;  // what ran it; empty: not told
};

/// Whatever differs here is no change of speed alone.
std::string setup_of(std::string_view model_type, std::int64_t model_size, std::string_view device) {
  return std::string(model_type) + ", " + human_bytes(model_size) + ", " + std::string(device);
}

/// Empty where the report does not tell it all.
std::string read_setup(const Json& row) {
  const Json* model = row.find("model_type");
  const Json* size = row.find("model_size");
  const Json* device = row.find("device");
  if (model == nullptr || size == nullptr || device == nullptr) return "";
  if (model->as_string() == nullptr || !size->as_int() || device->as_string() == nullptr) return "";
  return setup_of(*model->as_string(), *size->as_int(), *device->as_string());
}

[[noreturn]] void malformed(const std::string& source, const std::string& what) {
  throw Error(ErrorKind::file,
              escape_control(source) + ": " + what + "; expected a report made with -o json");
}

OldRow read_row(const Json& json, const std::string& source) {
  const auto member = [&](std::string_view key) -> const Json& {
    const Json* value = json.find(key);
    if (value == nullptr) malformed(source, "a row has no " + std::string(key));
    return *value;
  };
  OldRow row;
  const std::string* test = member("test").as_string();
  const std::string* mode = member("mode").as_string();
  const auto depth = member("n_depth").as_int();
  const JsonArray* samples = member("samples_ts").as_array();
  if (test == nullptr || mode == nullptr || !depth || samples == nullptr || samples->empty()) {
    malformed(source, "a row is not as it should be");
  }
  row.test = *test;
  row.mode = *mode;
  row.depth = *depth;
  row.setup = read_setup(json);
  for (const Json& sample : *samples) {
    const auto value = sample.as_double();
    if (!value || !(*value > 0)) malformed(source, "samples_ts holds something else than positive numbers");
    row.samples.push_back(*value);
  }
  return row;
}

std::vector<OldRow> read_rows(std::string_view text, const std::string& source) {
  const Json json = parse_json(text, source);
  const JsonArray* array = json.as_array();
  if (array == nullptr) malformed(source, "found " + std::string(json.type_name()));
  std::vector<OldRow> rows;
  for (const Json& row : *array) rows.push_back(read_row(row, source));
  return rows;
}

double squared_error(const std::vector<double>& samples) {
  const double spread = deviation(samples);
  return spread * spread / static_cast<double>(samples.size());
}

std::string verdict(const std::vector<double>& before, const std::vector<double>& now) {
  const double difference = mean(now) - mean(before);
  const double percent = 100 * difference / mean(before);
  const std::string change = (percent >= 0 ? "+" : "") + fixed(percent, 1) + " %";
  if (before.size() < 2 || now.size() < 2) return change + ", too few runs to tell the noise";
  // Two standard errors of the difference: by chance alone it is larger about one time in twenty.
  const double noise = 2 * std::sqrt(squared_error(before) + squared_error(now));
  const bool beyond = std::abs(difference) > noise;
  const std::string judged = !beyond ? "within the noise" : difference > 0 ? "faster" : "slower";
  return change + ", " + judged + " (noise " + fixed(100 * noise / mean(before), 1) + " %)";
}

std::string other_setup(const OldRow& old, const BenchRow& row) {
  if (old.setup.empty() || old.setup == setup_of(row.model_type, row.model_size, row.device)) return "";
  return "; before it was " + escape_control(old.setup);
}

}  // namespace

std::vector<std::string> compare_reports(std::string_view old_json, const std::string& source,
                                         const BenchReport& report) {
  const std::vector<OldRow> rows = read_rows(old_json, source);
  std::vector<std::string> lines;
  for (const BenchRow& row : report.rows) {
    const auto old = std::ranges::find_if(rows, [&row](const OldRow& candidate) {
      return candidate.test == row.test() && candidate.mode == row.mode && candidate.depth == row.n_depth;
    });
    const std::string name =
        row.mode + " " + row.test() + (row.n_depth > 0 ? " @ d" + std::to_string(row.n_depth) : "");
    if (old == rows.end()) {
      lines.push_back(name + ": not in " + escape_control(source));
      continue;
    }
    lines.push_back(name + ": " + fixed(mean(old->samples), 2) + " -> " + fixed(mean(row.samples_ts), 2) +
                    " t/s, " + verdict(old->samples, row.samples_ts) + other_setup(*old, row));
  }
  return lines;
}

}  // namespace qgen::cli
