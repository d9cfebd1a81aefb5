#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <csignal>

#include "cli/command.h"

namespace qgen::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

TEST(BenchCommand, TableHasTheFourModes) {
  const Result result = qgen({"--bench", "-p", "8", "-n", "4", "-r", "2"});
  ASSERT_EQ(result.status, 0) << result.err;
  EXPECT_EQ(result.err, "");
  for (const std::string word : {"naive", "cache", "fused", "all", "pp8", "tg4", "GB/s", "first token"}) {
    EXPECT_THAT(result.out, HasSubstr(word));
  }
}

TEST(BenchCommand, JsonRowsAreConsistent) {
  const Result result =
      qgen({"bench", "--bench-prompt", "16", "--bench-gen", "8", "-r", "3", "-o", "json", "--mode", "all"});
  ASSERT_EQ(result.status, 0) << result.err;
  const json rows = json_of(result);
  ASSERT_EQ(rows.size(), 2U);
  for (const json& row : rows) {
    EXPECT_EQ(row["samples_ts"].size(), 3U);
    for (const json& sample : row["samples_ts"]) EXPECT_GT(sample.get<double>(), 0);
    EXPECT_GT(row["avg_ts"], 0);
    EXPECT_GE(row["stddev_ts"], 0);
    EXPECT_GT(row["peak_rss"], 1'000'000);
    EXPECT_EQ(row["model_type"], "qwen3");
    EXPECT_EQ(row["mode"], "all");
  }
  EXPECT_GT(rows[0]["first_token_ms"], 0);
  EXPECT_GT(rows[0]["gflops"], 0);
  EXPECT_GT(rows[0]["compute_percent"], 0);
  EXPECT_TRUE(std::isfinite(rows[0]["compute_percent"].get<double>()));
  EXPECT_GT(rows[1]["bytes_per_token"], 10'000'000);
  EXPECT_GT(rows[1]["bandwidth_percent"], 0);
  EXPECT_TRUE(std::isfinite(rows[1]["bandwidth_percent"].get<double>()));
  EXPECT_NEAR(rows[1]["read_gb_s"].get<double>(),
              rows[1]["bytes_per_token"].get<double>() * rows[1]["median_ts"].get<double>() / 1e9, 1e-6);
}

TEST(BenchCommand, DepthsAreMeasured) {
  const json rows = json_of(qgen({"--bench", "-p", "0", "-n", "2", "-r", "1", "-d", "4,64", "-o", "json",
                                  "--mode", "all", "--kernels", "scalar"}));
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["n_depth"], 4);
  EXPECT_EQ(rows[1]["n_depth"], 64);
  EXPECT_GT(rows[1]["bytes_per_token"], rows[0]["bytes_per_token"]);
}

TEST(BenchCommand, NothingToMeasureIsAUsageError) {
  for (const std::string format : {"md", "json"}) {
    const Result result = qgen({"--bench", "-p", "0", "-n", "0", "-o", format, "--mode", "all"});
    expect_error(result, 2);
    EXPECT_THAT(result.err, HasSubstr("nothing to measure"));
  }
  expect_error(qgen({"--bench", "-p", "0", "-c", "2", "--mode", "all"}), 2);
}

TEST(BenchCommand, TokenizerWithoutTokensIsAnError) {
  const ModelFolder model{short_story()};
  std::string text = read_file(model.file("tokenizer.json"));
  const std::size_t vocab = text.find("\"vocab\":{") + 9;
  // One piece that the text does not hold; what has no piece is left out.
  text.replace(vocab, text.find("},\"merges\"") - vocab, "\"\u0100\":0");
  write_file(model.file("tokenizer.json"), text);
  const Result result = qgen({"--bench", "-m", model.path(), "-p", "8", "-n", "4", "-r", "1"});
  EXPECT_EQ(result.status, 5);
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1);
  EXPECT_THAT(result.err, HasSubstr("the tokenizer gives no tokens"));
}

TEST(BenchCommand, ReportsComparePlotAndListInOtherFormats) {
  const TempFolder folder;
  const std::string old = (folder.path() / "old.json").string();
  const std::string plot = (folder.path() / "plot.svg").string();
  const std::vector<std::string> sizes{"--bench", "-p", "4", "-n", "2", "-r", "2", "--mode", "all"};
  const auto bench = [&sizes](std::vector<std::string> more) {
    more.insert(more.begin(), sizes.begin(), sizes.end());
    return qgen(more);
  };
  write_file(old, bench({"-o", "json"}).out);
  const Result table = bench({"--bench-compare", old, "--plot", plot});
  EXPECT_THAT(table.out, HasSubstr("all pp4: "));
  EXPECT_TRUE(read_file(plot).starts_with("<svg "));
  const Result lines = bench({"-o", "jsonl", "--bench-compare", old});
  EXPECT_THAT(lines.err, HasSubstr("all tg2: "));
  EXPECT_EQ(json::parse(lines.out.substr(0, lines.out.find('\n')))["test"], "pp4");
  EXPECT_TRUE(bench({"-o", "csv"}).out.starts_with("test,mode,"));
  EXPECT_EQ(bench({"--bench-compare", "/nowhere"}).status, 5);
  EXPECT_EQ(bench({"--plot", "/nowhere/plot.svg"}).status, 8);
}

TEST(BenchCommand, InterruptReportsWhatThereIs) {
  Launch endless = launch({"--bench", "-r", "1000", "-p", "1", "-n", "2", "-o", "json"});
  endless.err = Stream::terminal;
  Process process(kQgen, endless);
  ASSERT_TRUE(process.wait_for_errors("prefill"));
  process.send(SIGINT);
  const Result result = process.finish();
  EXPECT_EQ(result.status, 130);
  EXPECT_TRUE(json_of(result).is_array());
}

}  // namespace
}  // namespace qgen::test
