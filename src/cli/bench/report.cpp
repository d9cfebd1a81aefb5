#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/bench/row.h"
#include "cli/io/format.h"
#include "cli/io/json_text.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"

namespace qgen::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson row_json(const BenchRow& row) {
  OrderedJson object;
  object["test"] = row.test();
  object["mode"] = row.mode;
  object["n_prompt"] = row.n_prompt;
  object["n_gen"] = row.n_gen;
  object["n_depth"] = row.n_depth;
  object["n_threads"] = row.n_threads;
  object["model_type"] = replace_invalid_utf8(row.model_type);
  object["model_size"] = row.model_size;
  object["avg_ts"] = mean(row.samples_ts);
  object["stddev_ts"] = deviation(row.samples_ts);
  object["median_ts"] = median(row.samples_ts);
  object["samples_ts"] = row.samples_ts;
  object["first_token_ms"] = or_null<OrderedJson>(row.first_token_ms);
  object["bytes_per_token"] = or_null<OrderedJson>(row.bytes_per_token);
  object["read_gb_s"] = or_null<OrderedJson>(row.read_gb_s);
  object["bandwidth_percent"] = or_null<OrderedJson>(row.bandwidth_percent);
  object["gflops"] = or_null<OrderedJson>(row.gflops);
  object["compute_percent"] = or_null<OrderedJson>(row.compute_percent);
  object["peak_rss"] = row.peak_rss;
  object["load_s"] = row.load_s;
  object["device"] = row.device;
  return object;
}

OrderedJson all_rows(const BenchReport& report) {
  OrderedJson rows = OrderedJson::array();
  for (const BenchRow& row : report.rows) rows.push_back(row_json(row));
  return rows;
}

std::string csv_field(const OrderedJson& value) {
  if (value.is_null()) return {};
  if (value.is_array()) {
    std::string joined;
    for (const OrderedJson& part : value) joined += (joined.empty() ? "" : ";") + part.dump();
    return "\"" + joined + "\"";
  }
  if (!value.is_string()) return json_text(value);
  std::string quoted = "\"";
  for (const char c : value.get_ref<const std::string&>()) {
    if (c == '"') quoted += '"';
    quoted += c;
  }
  return quoted + "\"";
}

std::string csv_report(const BenchReport& report) {
  std::string text;
  for (const OrderedJson& row : all_rows(report)) {
    std::string header, line;
    for (const auto& [key, value] : row.items()) {
      header += (header.empty() ? "" : ",") + key;
      line += (line.empty() ? "" : ",") + csv_field(value);
    }
    if (text.empty()) text = header + "\n";
    text += line + "\n";
  }
  return text;
}

std::string optional_number(const std::optional<double>& value, int decimals) {
  return value ? fixed(*value, decimals) : "";
}

std::string rate_cell(double value) {
  return fixed(value, value < 10 ? 2 : 1);
}

/// One row of the table, its cells padded to the widths of `columns`.
std::string table_line(const std::vector<std::string>& cells, const std::vector<std::size_t>& widths) {
  std::string line = "|";
  for (std::size_t i = 0; i < cells.size(); ++i) {
    const std::string blanks(widths[i] - cells[i].size(), ' ');
    // Words to the left, numbers to the right.
    line += i < 2 ? " " + cells[i] + blanks + " |" : " " + blanks + cells[i] + " |";
  }
  return line + "\n";
}

std::string table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text = table_line(rows.front(), widths);
  std::string rule = "|";
  for (std::size_t i = 0; i < widths.size(); ++i) {
    rule += i < 2 ? " " + std::string(widths[i], '-') + " |" : " " + std::string(widths[i] - 1, '-') + ": |";
  }
  text += rule + "\n";
  for (std::size_t i = 1; i < rows.size(); ++i) text += table_line(rows[i], widths);
  return text;
}

std::vector<std::string> table_cells(const BenchRow& row) {
  const auto [low, high] = std::ranges::minmax(row.samples_ts);
  return {row.mode,
          row.test() + (row.n_depth > 0 ? " @ d" + std::to_string(row.n_depth) : ""),
          std::to_string(row.samples_ts.size()),
          rate_cell(mean(row.samples_ts)) + " +- " + rate_cell(deviation(row.samples_ts)),
          rate_cell(median(row.samples_ts)),
          rate_cell(low) + " .. " + rate_cell(high),
          optional_number(row.first_token_ms, 1),
          optional_number(row.read_gb_s, 1),
          optional_number(row.bandwidth_percent, 0),
          optional_number(row.gflops, 1),
          optional_number(row.compute_percent, 0),
          human_bytes(row.peak_rss)};
}

std::string limits_line(const BenchReport& report) {
  std::vector<std::string> limits;
  if (report.read_bytes_per_second > 0) {
    limits.push_back("reads these weights at " + fixed(report.read_bytes_per_second / 1e9, 1) + " GB/s");
  }
  if (report.peak_ops_per_second > 0) {
    limits.push_back("computes " + fixed(report.peak_ops_per_second / 1e9, 0) + " GFLOP/s");
  }
  if (limits.empty()) return "";
  return "Machine, measured between the repetitions with these threads: " + join(limits) + ".\n";
}

std::string markdown_report(const BenchReport& report) {
  if (report.rows.empty()) return "Nothing was measured.\n";
  const BenchRow& last = report.rows.back();
  std::string text = "Model " + report.model + ": " + escape_control(last.model_type) + ", " +
                     fixed(static_cast<double>(report.parameters) / 1e6, 1) + " M parameters, weights " +
                     human_bytes(last.model_size) + ", loaded in " + fixed(last.load_s, 2) + " s; " +
                     last.device + ".\n";
  text += limits_line(report);
  std::vector<std::vector<std::string>> rows{{"mode", "test", "runs", "t/s", "median", "range",
                                              "first token ms", "GB/s", "% read", "GFLOP/s", "% peak",
                                              "peak memory"}};
  for (const BenchRow& row : report.rows) rows.push_back(table_cells(row));
  return text + "\n" + table(rows) +
         "\nppN: a prompt of N tokens, tgN: N tokens after it, t/s: tokens per second, mean and standard "
         "deviation.\n"
         "naive: plain kernels, no cache; cache: plain kernels; fused: best kernels, no cache; all: both.\n";
}

}  // namespace

std::string format_report(const BenchReport& report, std::string_view format) {
  if (format == "csv") return csv_report(report);
  if (format == "md") return markdown_report(report);
  std::string lines;
  for (const BenchRow& row : report.rows) {
    const bool separated = format == "json" && !lines.empty();
    lines += (separated ? ",\n " : "") + json_text(row_json(row)) + (format == "jsonl" ? "\n" : "");
  }
  return format == "json" ? "[" + lines + "]\n" : lines;
}

}  // namespace qgen::cli
