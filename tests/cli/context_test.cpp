// Prompts that do not fit, and contexts that fill.
#include <gmock/gmock.h>

#include "cli/command.h"

namespace qgen::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class Context : public ::testing::Test {
 protected:
  static ScriptedModel small() {
    ScriptedModel model;
    model.context = 32;
    return model;
  }
  [[nodiscard]] std::vector<std::string> with_model(std::vector<std::string> more) const {
    more.insert(more.begin(), {"-m", model_.path()});
    return more;
  }
  ModelFolder model_{small()};
  TempFolder folder_;
};

TEST_F(Context, LongPromptIsRefusedWithBothNumbersOnEveryRoute) {
  const std::string prompt(185, 'p');
  const std::string file = (folder_.path() / "prompt").string();
  write_file(file, prompt);
  const std::vector<Result> results{qgen(with_model({"-p", prompt})), qgen(with_model({prompt})),
                                    qgen(with_model({"-f", file})), qgen_with_input(with_model({}), prompt),
                                    qgen(with_model({"-p", prompt, "--json"}))};
  for (const Result& result : results) {
    EXPECT_EQ(result.status, 3);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(HasSubstr("185"), HasSubstr("32")));
    EXPECT_EQ(result.err, results[0].err);
  }
}

TEST_F(Context, PromptThatLeavesNoRoomIsRefused) {
  EXPECT_EQ(qgen(with_model({"-p", std::string(32, 'p')})).status, 3);
  EXPECT_EQ(qgen(with_model({"-p", std::string(31, 'p')})).out, "p");
}

TEST_F(Context, SizeIsAnOption) {
  EXPECT_EQ(qgen(with_model({"-p", "pppppppp", "-c", "8"})).status, 3);
  EXPECT_EQ(qgen(with_model({"-p", "ppppppp", "-c", "8"})).out, "p");
  EXPECT_EQ(qgen(with_model({"-p", "p", "-c", "0"})).out.size(), 31U);
  const Result result = qgen(with_model({"-p", "p", "--ctx_size", "33"}));
  EXPECT_EQ(result.status, 2);
  EXPECT_THAT(result.err, AllOf(HasSubstr("33"), HasSubstr("32")));
}

TEST_F(Context, OverflowDropsWhatWasChosenAndSaysSo) {
  std::string prompt = "a" + std::string(60, 'm') + "z";
  for (const auto& [how, where] : std::vector<std::pair<std::string, std::string>>{
           {"head", "beginning"}, {"tail", "end"}, {"middle", "middle"}}) {
    const Result result = qgen(with_model({"-p", prompt, "--overflow", how, "-n", "4"}));
    EXPECT_EQ(result.status, 0);
    EXPECT_EQ(result.out, how == "tail" ? "mmmm" : "zzzz");
    EXPECT_THAT(result.err, AllOf(HasSubstr("dropped 34 of 62"), HasSubstr(where)));
    EXPECT_EQ(json_of(qgen(with_model(
                  {"-p", prompt, "--overflow", how, "-n", "4", "--json"})))["usage"]["prompt_tokens"],
              28);
  }
}

TEST_F(Context, OfOneTokenHasNoRoomWhateverIsDropped) {
  for (const std::string how : {"error", "head", "tail", "middle"}) {
    const Result result = qgen(with_model({"-p", "pp", "-c", "1", "--overflow", how}));
    EXPECT_EQ(result.status, 3);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, AllOf(HasSubstr("2 tokens"), HasSubstr("holds 1 "), HasSubstr("-c")));
  }
}

TEST_F(Context, FullContextCutsTheText) {
  const Result result = qgen(with_model({"-p", "x"}));
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.out, std::string(31, 'x'));
  EXPECT_THAT(result.err, HasSubstr("context is full"));
  EXPECT_EQ(json_of(qgen(with_model({"-p", "x", "--json"})))["stop"], "context");
}

TEST_F(Context, SlidingGoesOn) {
  const Result result = qgen(with_model({"-p", "x", "-n", "100", "--context-full", "slide"}));
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, std::string(100, 'x'));
}

TEST_F(Context, SlidingEqualsTheTextbookLoop) {
  const std::vector<std::string> common{"-p",       "Once upon a time", "-c",    "16",        "-n",    "24",
                                        "--greedy", "--context-full",   "slide", "--kernels", "scalar"};
  const auto text = [&](std::vector<std::string> more) {
    more.insert(more.begin(), common.begin(), common.end());
    return qgen(more).out;
  };
  const std::string expected = text({"--mode", "naive"});
  EXPECT_GT(expected.size(), 24U);
  EXPECT_EQ(text({"--mode", "all"}), expected);
  EXPECT_EQ(text({"--mode", "naive", "--keep", "4"}), text({"--mode", "all", "--keep", "4"}));
  EXPECT_NE(text({"--mode", "naive", "--keep", "4"}), expected);
}

TEST_F(Context, LengthIsSuccessUnlessAskedOtherwise) {
  EXPECT_EQ(qgen(with_model({"-p", "x", "-n", "3"})).status, 0);
  const Result result = qgen(with_model({"-p", "x", "-n", "3", "--fail-on-length"}));
  EXPECT_EQ(result.status, 3);
  EXPECT_EQ(result.out, "xxx");
}

TEST_F(Context, NothingAskedForIsNothingMissing) {
  const Result result = qgen(with_model({"-p", "x", "-n", "0", "--fail-on-length"}));
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.err, "");
}

TEST_F(Context, KeepingEverythingIsRefused) {
  expect_error(qgen({"-p", "Once", "-c", "16", "--context-full", "slide", "--keep", "16"}), 2);
  EXPECT_EQ(qgen({"-p", "Once", "-c", "16", "--context-full", "slide", "--keep", "15", "-n", "2"}).status, 0);
}

}  // namespace
}  // namespace qgen::test
