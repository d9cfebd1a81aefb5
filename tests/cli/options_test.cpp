// What the program says to command lines that make no sense, and to those in a neighbour's dialect.
#include <gmock/gmock.h>

#include <algorithm>

#include "cli/command.h"

namespace qgen::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

struct BadCommand {
  std::vector<std::string> arguments;
  std::vector<std::string> says;
};

class BadOptions : public ::testing::TestWithParam<BadCommand> {};

TEST_P(BadOptions, ExitWith2AndOneLineThatNamesThem) {
  const Result result = qgen(GetParam().arguments);
  EXPECT_EQ(result.status, 2);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  EXPECT_TRUE(result.err.starts_with("qgen: ")) << result.err;
  for (const std::string& word : GetParam().says) EXPECT_THAT(result.err, HasSubstr(word));
}

INSTANTIATE_TEST_SUITE_P(
    Numbers, BadOptions,
    ::testing::Values(BadCommand{{"x", "--seed", ".9"}, {"--seed", ".9", "18446744073709551615"}},
                      BadCommand{{"x", "-s", "-1"}, {"-s", "-1", "from 0"}},
                      BadCommand{{"x", "-n", "abc"}, {"-n", "abc", "from -1 to"}},
                      BadCommand{{"x", "-n", "10x"}, {"-n", "10x"}},
                      BadCommand{{"x", "--n_predict", "-2"}, {"--n_predict", "-2"}},
                      BadCommand{{"x", "-n", "99999999999999999999"}, {"-n", "99999999999999999999"}},
                      BadCommand{{"x", "--top-p", "1.5"}, {"--top-p", "1.5", "0 to 1"}},
                      BadCommand{{"x", "--top_p", "nan"}, {"--top_p", "nan", "0 to 1"}},
                      BadCommand{{"x", "--temp", "-1"}, {"--temp", "-1", "from 0"}},
                      BadCommand{{"x", "--temperature", "inf"}, {"--temperature", "inf"}},
                      BadCommand{{"x", "--temp", "0,8"}, {"--temp", "0,8"}},
                      BadCommand{{"x", "--min-p", "2"}, {"--min-p", "2"}},
                      BadCommand{{"x", "--top-k", "1.5"}, {"--top-k", "1.5"}},
                      BadCommand{{"x", "--top-k", "-2"}, {"--top-k", "-2"}},
                      BadCommand{{"x", "--repeat-penalty", "0"}, {"--repeat-penalty", "0"}},
                      BadCommand{{"x", "--presence-penalty", "9"}, {"--presence-penalty", "9"}},
                      BadCommand{{"x", "--threads", "0"}, {"--threads", "0", "1 to 512"}},
                      BadCommand{{"x", "-t", "100000"}, {"-t", "100000"}},
                      BadCommand{{"x", "-c", "-5"}, {"-c", "-5"}},
                      BadCommand{{"x", "--keep", "-1"}, {"--keep", "-1"}},
                      BadCommand{{"x", "--json", "--logprobs", "1000"}, {"--logprobs", "1000"}}));

INSTANTIATE_TEST_SUITE_P(
    Words, BadOptions,
    ::testing::Values(
        BadCommand{{"x", "--overflow", "sideways"}, {"--overflow", "error, head, tail, middle"}},
        BadCommand{{"x", "--context-full", "go"}, {"--context-full", "stop, slide"}},
        BadCommand{{"x", "--mode", "fast"}, {"--mode", "naive, cache, fused, all"}},
        BadCommand{{"x", "--kv", "q9"}, {"--kv", "q9"}},
        BadCommand{{"x", "--weights", "f64"}, {"--weights", "f64"}},
        BadCommand{{"x", "--preset", "poetic"}, {"--preset", "creative, factual, code"}},
        BadCommand{{"x", "--sampler-order", "top_k,heat"}, {"--sampler-order", "heat", "temperature"}},
        BadCommand{{"x", "--sampler-order", "top_k,top_k"}, {"top_k"}},
        BadCommand{{"x", "--kernels", "mmx"}, {"mmx", "scalar"}},
        BadCommand{{"x", "--kernels", ""}, {"--kernels", "empty"}},
        BadCommand{{"x", "--device", "abacus"}, {"abacus", "reference"}},
        BadCommand{{"x", "--lookup", "yes"}, {"--lookup", "yes"}},
        BadCommand{{"x", "--lookup", "65"}, {"--lookup", "65", "0 to 64"}}));

INSTANTIATE_TEST_SUITE_P(
    Shapes, BadOptions,
    ::testing::Values(
        BadCommand{{"--tempreture", "1"}, {"unknown option --tempreture", "--temperature"}},
        BadCommand{{"--promt=x"}, {"--promt", "--prompt"}}, BadCommand{{"-Z"}, {"-Z"}},
        BadCommand{{"-5 degrees"}, {"--"}}, BadCommand{{"x", "--seed"}, {"--seed needs a value"}},
        BadCommand{{"x", "-n"}, {"-n needs a value"}},
        BadCommand{{"x", "--quiet=1"}, {"--quiet takes no value"}},
        BadCommand{{"x", "--stop", ""}, {"--stop"}}, BadCommand{{"x", "-m", ""}, {"-m", "empty"}},
        BadCommand{{"two", "words"}, {"'words'", "quotes"}}, BadCommand{{"one", "-p", "two"}, {"-p"}},
        BadCommand{{"x", "--json", "--json-stream"}, {"--json-stream"}},
        BadCommand{{"x", "--logprobs", "2"}, {"--logprobs", "--json"}},
        BadCommand{{"x", "--mode", "naive,all"}, {"--mode"}},
        BadCommand{{"x", "--bench-gen", "4"}, {"--bench-gen", "--bench"}},
        BadCommand{{"x", "-o", "json"}, {"-o", "--bench"}},
        BadCommand{{"x", "-sys", "be kind"}, {"-sys", "raw"}},
        BadCommand{{"chat"}, {"chat", "not available"}}, BadCommand{{"doctor", "now"}, {"now"}},
        BadCommand{{"doctor", "--jsn"}, {"--jsn", "--json"}},
        BadCommand{{"tokenize", "--ids", "--count", "x"}, {"--ids", "--count"}},
        BadCommand{{"--bench", "-p", "text"}, {"-p", "text"}},
        BadCommand{{"--bench", "-n", "-1"}, {"-n", "-1"}}, BadCommand{{"--bench", "-d", "1,,2"}, {"-d"}},
        BadCommand{{"--bench", "-r", "0"}, {"-r"}}, BadCommand{{"--bench", "--json"}, {"-o"}},
        BadCommand{{"--bench", "-f", "x"}, {"-f"}}, BadCommand{{"--bench", "-p", "5000"}, {"5001", "1024"}}));

INSTANTIATE_TEST_SUITE_P(LaterParts, BadOptions,
                         ::testing::Values(BadCommand{{"--jsonl", "x"}, {"--jsonl"}},
                                           BadCommand{{"x", "--think", "on"}, {"--think"}},
                                           BadCommand{{"x", "--null"}, {"--null"}}));

TEST(Options, NumbersAreHeldAsAsked) {
  for (const std::string weights : {"bf16", "q8", "q4"}) {
    for (const std::string kv : {"f32", "f16", "bf16", "q8"}) {
      const Result result = qgen({"x", "-n", "1", "--weights", weights, "--kv", kv, "--verbose"});
      EXPECT_EQ(result.status, 0) << result.err;
      EXPECT_THAT(result.err, HasSubstr(weights + " weights, " + kv + " cache"));
    }
  }
  EXPECT_EQ(qgen({"x", "--device", "reference", "--weights", "q8"}).status, 7);
}

TEST(Options, VerboseTellsTheMemoryBeforeItIsTaken) {
  // The built-in model has 5,767,168 numbers in its matrices.
  for (const auto& [weights, megabytes] :
       std::vector<std::pair<std::string, std::string>>{{"bf16", "12"}, {"q8", "7"}, {"q4", "4"}}) {
    const Result result = qgen({"x", "-n", "1", "--verbose", "--weights", weights});
    const std::size_t told = result.err.find("memory needed: about " + megabytes + " MB");
    ASSERT_NE(told, std::string::npos) << result.err;
    EXPECT_LT(told, result.err.find("cpu: "));
  }
}

TEST(Options, DefaultsOfLaterPartsAreAccepted) {
  const Result result =
      qgen({"x", "-n", "1", "--weights", "auto", "--lookup", "off", "--kv", "auto", "--raw"});
  EXPECT_EQ(result.status, 0) << result.err;
}

TEST(Options, DialectsOfNeighboursMeanTheSame) {
  const std::string expected =
      qgen({"-p", "Once", "-n", "12", "--temp", "0.7", "--top-p", "0.8", "-s", "5"}).out;
  EXPECT_FALSE(expected.empty());
  EXPECT_EQ(qgen({"--prompt", "Once", "--max_tokens", "12", "--temperature", "0.7", "--top_p", "0.8",
                  "--seed", "5"})
                .out,
            expected);
  EXPECT_EQ(qgen({"--prompt=Once", "--max-new-tokens=12", "--temp=.7", "--top-p=8e-1", "--seed=5"}).out,
            expected);
  EXPECT_EQ(qgen({"Once", "--n_predict", "12", "--temp", "0.7", "--top-p", "0.8", "-s5"}).out, expected);
}

TEST(Options, LastOfARepeatedOptionCounts) {
  EXPECT_EQ(
      json_of(qgen({"-p", "A", "-p", "Once", "-n", "3", "-n", "1", "--json"}))["usage"]["completion_tokens"],
      1);
}

TEST(Options, NumbersDoNotDependOnTheLocale) {
  const std::vector<std::string> arguments{"-p", "Once", "-n", "8", "--temp", "0.7", "--seed", "1"};
  const std::string expected = qgen(arguments).out;
  for (const std::string locale : {"de_DE.UTF-8", "nb_NO.UTF-8", "C"}) {
    Launch launch = test::launch(arguments);
    launch.environment = {{"LC_ALL", locale}, {"LANG", locale}};
    EXPECT_EQ(run(kQgen, launch).out, expected);
    launch.arguments.insert(launch.arguments.end(), {"--stats"});
    EXPECT_THAT(run(kQgen, launch).err, HasSubstr("load 0."));
  }
}

TEST(Options, HelpIsForNewcomersAndNamesTheMemoryOption) {
  const Result result = qgen({"--help"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "");
  for (const std::string word : {"Examples", "--prompt", "--ctx-size", "Memory", "qgen doctor", "130"}) {
    EXPECT_THAT(result.out, HasSubstr(word));
  }
  EXPECT_LT(result.out.find("Examples"), result.out.find("--model"));
  EXPECT_EQ(qgen({"-h"}).out, result.out);
}

TEST(Options, CommandsHaveTheirOwnHelp) {
  EXPECT_THAT(qgen({"tokenize", "--help"}).out, HasSubstr("--decode"));
  EXPECT_THAT(qgen({"doctor", "-h"}).out, HasSubstr("--json"));
  EXPECT_THAT(qgen({"bench", "--help"}).out, HasSubstr("--bench-depth"));
}

TEST(Options, VersionIsOneLine) {
  const Result result = qgen({"--version"});
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(result.out.starts_with("qgen "));
  EXPECT_EQ(std::ranges::count(result.out, '\n'), 1);
}

TEST(Options, WordsOfCommandsAreTextsElsewhere) {
  EXPECT_EQ(qgen({"-p", "doctor", "-n", "0", "--echo"}).out, "doctor");
  EXPECT_EQ(qgen({"-n", "0", "--echo", "--", "tokenize"}).out, "tokenize");
}

}  // namespace
}  // namespace qgen::test
