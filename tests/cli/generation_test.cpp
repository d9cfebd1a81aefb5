// What is generated, and when it ends.
#include <gmock/gmock.h>

#include <algorithm>
#include <set>

#include "cli/command.h"

namespace qgen::test {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string story(std::vector<std::string> more) {
  more.insert(more.begin(), {"-p", "Once upon a time", "-n", "30"});
  const Result result = qgen(more);
  EXPECT_EQ(result.status, 0) << result.err;
  return result.out;
}

TEST(Generation, BudgetIsExact) {
  const ModelFolder folder{ScriptedModel{}};
  for (int n = 0; n <= 3; ++n) {
    const Result result = qgen({"-m", folder.path(), "-p", "x", "-n", std::to_string(n)});
    EXPECT_EQ(result.out, std::string(static_cast<std::size_t>(n), 'x'));
    EXPECT_EQ(result.status, 0);
  }
}

TEST(Generation, EveryEndTokenEndsAndNoneIsPrinted) {
  for (const int end : {ScriptedModel::kEnd, ScriptedModel::kOtherEnd}) {
    ScriptedModel model = short_story();
    model.next['f'] = end;
    const ModelFolder folder(model);
    const Result result = qgen({"-m", folder.path(), "-p", "a"});
    EXPECT_EQ(result.out, "bcdef");
    EXPECT_EQ(result.status, 0);
    const Result json = qgen({"-m", folder.path(), "-p", "a", "--json"});
    EXPECT_EQ(json_of(json)["stop"], "end");
    EXPECT_EQ(json_of(json)["tokens"], (std::vector<int>{98, 99, 100, 101, 102}));
  }
}

TEST(Generation, EndTokenAtOnceIsAnEmptyReply) {
  ScriptedModel model;
  model.next['a'] = ScriptedModel::kEnd;
  const ModelFolder folder(model);
  const Result result = qgen({"-m", folder.path(), "-p", "a", "--stats"});
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.err, Not(HasSubstr("inf")));
  EXPECT_THAT(result.err, Not(HasSubstr("nan")));
  EXPECT_THAT(result.err, HasSubstr("n/a tok/s"));
}

TEST(Generation, PaddedRowsAreNeverChosen) {
  ScriptedModel model = short_story();
  model.padding_wins = true;
  const ModelFolder folder(model);
  EXPECT_EQ(qgen({"-m", folder.path(), "-p", "a", "--greedy"}).out, "bcdef");
  EXPECT_EQ(qgen({"-m", folder.path(), "-p", "a", "--temp", "0.1"}).out, "bcdef");
}

TEST(Generation, StopStringsEndTheTextBeforeThem) {
  const ModelFolder folder{short_story()};
  const Result result = qgen({"-m", folder.path(), "-p", "a", "--stop", "zz", "--stop", "de", "--json"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(json_of(result)["text"], "bc");
  EXPECT_EQ(json_of(result)["stop"], "stop");
  EXPECT_EQ(qgen({"-m", folder.path(), "-p", "a", "--stop", "b"}).out, "");
  EXPECT_EQ(qgen({"-m", folder.path(), "-p", "a", "--stop", "efg"}).out, "bcdef");
}

TEST(Generation, SameSeedSameTextForAnyNumberOfThreads) {
  const std::string one = story({"--seed", "11", "-t", "1"});
  EXPECT_FALSE(one.empty());
  for (const std::string threads : {"2", "3", "4", "16"})
    EXPECT_EQ(story({"--seed", "11", "-t", threads}), one);
}

TEST(Generation, SeedsMatterAndZeroIsOneOfThem) {
  std::set<std::string> texts;
  for (const std::string seed : {"0", "1", "2", "18446744073709551615"})
    texts.insert(story({"--seed", seed}));
  EXPECT_EQ(texts.size(), 4U);
  EXPECT_EQ(story({"--seed", "0"}), story({"--seed", "0"}));
  EXPECT_GT(story({"--seed", "0"}).size(), 30U);
}

TEST(Generation, RandomSeedIsReportedAndRepeats) {
  const nlohmann::json first = json_of(qgen({"-p", "Once", "-n", "20", "--json"}));
  const std::string seed = std::to_string(first["seed"].get<std::uint64_t>());
  EXPECT_EQ(json_of(qgen({"-p", "Once", "-n", "20", "--json", "--seed", seed}))["text"], first["text"]);
}

TEST(Generation, GreedyIgnoresTheSeed) {
  EXPECT_EQ(story({"--greedy", "--seed", "1"}), story({"--temp", "0", "--seed", "2"}));
  EXPECT_EQ(story({"--top-k", "1", "--seed", "1"}), story({"--greedy"}));
}

TEST(Generation, TopKZeroIsOff) {
  EXPECT_NE(story({"--top-k", "0", "--temp", "1.2", "--seed", "1"}),
            story({"--top-k", "0", "--temp", "1.2", "--seed", "2"}));
  EXPECT_EQ(story({"--top-k", "0", "--seed", "1"}), story({"--top-k", "1000000", "--seed", "1"}));
}

TEST(Generation, ModesGiveTheSameText) {
  const std::string expected = story({"--greedy", "-n", "12", "--mode", "all"});
  for (const std::string mode : {"naive", "cache", "fused"})
    EXPECT_EQ(story({"--greedy", "-n", "12", "--mode", mode}), expected);
}

TEST(Generation, ModesChooseTheirKernels) {
  const auto kernels = [](const std::string& mode) {
    return qgen({"-p", "x", "-n", "1", "-v", "--mode", mode}).err;
  };
  EXPECT_THAT(kernels("naive"), HasSubstr("scalar"));
  EXPECT_THAT(kernels("cache"), HasSubstr("scalar"));
}

TEST(Generation, ReferenceDeviceSaysTheSame) {
  EXPECT_EQ(story({"--greedy", "--device", "reference"}), story({"--greedy"}));
}

TEST(Generation, CacheTypesWork) {
  const std::string expected = story({"--greedy", "--kv", "f32"});
  for (const std::string type : {"auto", "f16", "bf16", "q8"})
    EXPECT_FALSE(story({"--greedy", "--kv", type}).empty());
  EXPECT_EQ(story({"--greedy", "--kv", "f16"}), expected);
}

TEST(Generation, BuiltInModelEqualsItsFolder) {
  EXPECT_EQ(story({"--seed", "4"}), story({"--seed", "4", "-m", tales_folder().string()}));
}

TEST(Generation, PiecesOfCharactersAreJoined) {
  ScriptedModel model;
  model.chain("A\xe5\x8d\x95").next[0x95] = ScriptedModel::kEnd;
  const ModelFolder folder(model);
  EXPECT_EQ(qgen({"-m", folder.path(), "-p", "A"}).out, "\xe5\x8d\x95");
  EXPECT_EQ(json_of(qgen({"-m", folder.path(), "-p", "A", "--json"}))["text"], "\xe5\x8d\x95");
}

TEST(Generation, BytesThatAreNoCharactersArePassedOn) {
  ScriptedModel model;
  model.chain("A\xc3\\").next['\\'] = ScriptedModel::kEnd;
  const ModelFolder folder(model);
  EXPECT_EQ(qgen({"-m", folder.path(), "-p", "A"}).out, "\xc3\\");
  EXPECT_EQ(json_of(qgen({"-m", folder.path(), "-p", "A", "--json"}))["text"], "\xef\xbf\xbd\\");

  model.next[0xc3] = ScriptedModel::kEnd;
  const ModelFolder unfinished(model);
  EXPECT_EQ(qgen({"-m", unfinished.path(), "-p", "A"}).out, "\xc3");
}

TEST(Generation, SpacesAreSpaces) {
  EXPECT_THAT(story({"--seed", "1"}), Not(HasSubstr("\xc4\xa0")));
}

TEST(Generation, FirstTokenOfTheBuiltInModelTakesLittleTime) {
  if (kSanitized) GTEST_SKIP() << "sanitizers take their time";
  double least = 1e9;
  for (int i = 0; i < 5; ++i) {
    const Result result = qgen({"-p", "Once upon a time", "-n", "1"});
    ASSERT_EQ(result.status, 0) << result.err;
    least = std::min(least, result.cpu_seconds);
  }
  EXPECT_LT(least, 0.1);
}

}  // namespace
}  // namespace qgen::test
