#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "cli/bench/row.h"
#include "qgen/base/error.h"

namespace qgen::cli {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

BenchReport sample_report() {
  BenchRow prefill;
  prefill.mode = "all";
  prefill.n_prompt = 512;
  prefill.n_threads = 2;
  prefill.model_type = "qwen3";
  prefill.samples_ts = {100, 104, 96, 101, 99};
  prefill.first_token_ms = 12.5;
  prefill.gflops = 300;
  BenchRow decode = prefill;
  decode.n_prompt = 0;
  decode.n_gen = 128;
  decode.n_depth = 64;
  decode.first_token_ms.reset();
  decode.bytes_per_token = 1000;
  BenchReport report;
  report.model = "tiny";
  report.parameters = 1000;
  report.rows = {prefill, decode};
  return report;
}

TEST(BenchStatistics, MeanDeviationMedian) {
  EXPECT_EQ(mean({1, 2, 3, 6}), 3);
  EXPECT_NEAR(deviation({1, 2, 3, 6}), 2.1602468994692869, 1e-15);
  EXPECT_EQ(median({6, 1, 3}), 3);
  EXPECT_EQ(median({6, 1, 3, 2}), 2.5);
  EXPECT_EQ(deviation({5}), 0);
  EXPECT_EQ(median({}), 0);
}

TEST(BenchReportFormats, JsonHasTheAgreedFields) {
  const json rows = json::parse(format_report(sample_report(), "json"));
  ASSERT_EQ(rows.size(), 2U);
  for (const std::string key :
       {"test", "mode", "n_prompt", "n_gen", "n_depth", "n_threads", "model_type", "model_size", "avg_ts",
        "stddev_ts", "median_ts", "samples_ts", "first_token_ms", "bytes_per_token", "read_gb_s",
        "bandwidth_percent", "gflops", "compute_percent", "peak_rss"}) {
    EXPECT_TRUE(rows[0].contains(key)) << key;
  }
  EXPECT_EQ(rows[0]["test"], "pp512");
  EXPECT_EQ(rows[1]["test"], "tg128");
  EXPECT_EQ(rows[0]["avg_ts"], 100);
  EXPECT_EQ(rows[0]["median_ts"], 100);
  EXPECT_TRUE(rows[0]["bytes_per_token"].is_null());
  EXPECT_EQ(rows[1]["bytes_per_token"], 1000);
}

TEST(BenchReportFormats, JsonLinesAreTheSameRows) {
  const std::string text = format_report(sample_report(), "jsonl");
  const std::size_t newline = text.find('\n');
  EXPECT_EQ(json::parse(text.substr(0, newline)), json::parse(format_report(sample_report(), "json"))[0]);
  EXPECT_EQ(std::ranges::count(text, '\n'), 2);
}

TEST(BenchReportFormats, CsvHasAHeaderAndARowForEachTest) {
  const std::string text = format_report(sample_report(), "csv");
  EXPECT_EQ(std::ranges::count(text, '\n'), 3);
  EXPECT_TRUE(text.starts_with("test,mode,n_prompt,"));
  EXPECT_THAT(text, HasSubstr("\n\"tg128\",\"all\",0,128,64,"));
}

TEST(BenchReportFormats, MarkdownNamesTestsAndDepths) {
  const std::string text = format_report(sample_report(), "md");
  EXPECT_THAT(text, HasSubstr("pp512"));
  EXPECT_THAT(text, HasSubstr("tg128 @ d64"));
}

TEST(BenchReportFormats, NothingMeasuredIsStillValid) {
  EXPECT_EQ(json::parse(format_report({}, "json")), json::array());
  EXPECT_EQ(format_report({}, "jsonl"), "");
  EXPECT_FALSE(format_report({}, "md").empty());
  EXPECT_FALSE(plot_report({}).empty());
}

TEST(BenchPlot, DrawsABarForEachRow) {
  const std::string picture = plot_report(sample_report());
  EXPECT_TRUE(picture.starts_with("<svg "));
  EXPECT_THAT(picture, HasSubstr("all tg128 @ d64"));
  BenchReport named = sample_report();
  named.model = "<a&b>";
  EXPECT_THAT(plot_report(named), HasSubstr("&lt;a&amp;b&gt;"));
}

TEST(BenchCompare, TellsChangeFromNoise) {
  const BenchReport before = sample_report();
  BenchReport now = before;
  now.rows[0].samples_ts = {201, 199, 200, 202, 198};
  now.rows[1].samples_ts = {101, 105, 95, 100, 99};
  const std::vector<std::string> lines = compare_reports(format_report(before, "json"), "old.json", now);
  ASSERT_EQ(lines.size(), 2U);
  EXPECT_THAT(lines[0], HasSubstr("+100.0 %, faster"));
  EXPECT_THAT(lines[1], HasSubstr("within the noise"));
}

TEST(BenchCompare, TestsThatAreNewAreNamed) {
  BenchReport now = sample_report();
  now.rows[0].n_prompt = 64;
  EXPECT_THAT(compare_reports(format_report(sample_report(), "json"), "old.json", now)[0],
              HasSubstr("all pp64: not in old.json"));
}

TEST(BenchCompare, AnotherSetupIsTold) {
  BenchReport before = sample_report();
  for (BenchRow& row : before.rows) row.device = "cpu: plain kernels";
  BenchReport now = before;
  now.rows[1].device = "cpu: swift kernels";
  const std::vector<std::string> lines = compare_reports(format_report(before, "json"), "old.json", now);
  EXPECT_THAT(lines[0], Not(HasSubstr("before it was")));
  EXPECT_THAT(lines[1], HasSubstr("before it was "));
  EXPECT_THAT(lines[1], HasSubstr("cpu: plain kernels"));
}

TEST(BenchCompare, OtherFilesAreRefused) {
  for (const std::string text :
       {"", "{}", "[1]", "[{}]", R"([{"test":"pp1","mode":"all","n_depth":0,"samples_ts":[]}])",
        R"([{"test":"pp1","mode":"all","n_depth":0,"samples_ts":[0]}])"}) {
    EXPECT_THROW(static_cast<void>(compare_reports(text, "old.json", sample_report())), Error) << text;
  }
}

}  // namespace
}  // namespace qgen::cli
