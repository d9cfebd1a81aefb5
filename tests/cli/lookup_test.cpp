// --lookup: guesses from the text itself change how many steps a text takes and nothing else.
#include <gmock/gmock.h>

#include "cli/command.h"

namespace qgen::test {
namespace {

using ::testing::HasSubstr;

const std::string kLetters = "abcdefghijklmnopqrstuvwxyz";

/// Says the alphabet over and over.
ScriptedModel alphabet() {
  ScriptedModel model;
  model.chain(kLetters + "a");
  model.context = 200;
  return model;
}

std::vector<std::string> joined(std::vector<std::string> first, const std::vector<std::string>& more) {
  first.insert(first.end(), more.begin(), more.end());
  return first;
}

/// How many guesses of a run came true, as --stats tells.
int accepted(const Result& result) {
  const std::size_t end = result.err.find(" accepted");
  const std::size_t begin = result.err.rfind(' ', end - 1);
  return end == std::string::npos ? -1 : std::stoi(result.err.substr(begin, end - begin));
}

class Lookup : public ::testing::Test {
 protected:
  /// Runs with the default and with other numbers, expects what there is without, and returns the guesses
  /// that came true.
  static int expect_same(const std::vector<std::string>& command) {
    const Result off = qgen(joined(command, {"--lookup", "off"}));
    const Result on = qgen(joined(command, {"--stats"}));
    EXPECT_EQ(on.out, off.out);
    EXPECT_EQ(on.status, off.status) << on.err;
    const Result others = qgen(joined(command, {"--lookup", "15"}));
    EXPECT_EQ(others.out, off.out);
    EXPECT_EQ(others.status, off.status);
    EXPECT_EQ(others.err, off.err);
    return accepted(on);
  }
  [[nodiscard]] std::vector<std::string> told(const std::vector<std::string>& more) const {
    return joined({"-m", model_.path(), "-p", kLetters + "abc"}, more);
  }
  static std::vector<std::string> story(const std::vector<std::string>& more) {
    return joined({"-p", "Once upon a time there was a king who had three sons", "-n", "120"}, more);
  }

  ModelFolder model_{alphabet()};
};

TEST_F(Lookup, GreedyTextOfTheBuiltInModelIsTheSame) {
  EXPECT_GT(expect_same(story({"--greedy"})), 10);
  EXPECT_GT(expect_same(story({"--greedy", "--kernels", "scalar", "--mode", "cache"})), 10);
  EXPECT_GE(expect_same(story({"--greedy", "--repeat-penalty", "1.1", "--frequency-penalty", "0.05"})), 0);
  EXPECT_GT(expect_same(story({"--greedy", "--kv", "f32", "-t", "1"})), 10);
}

TEST_F(Lookup, SampledTextOfTheBuiltInModelIsTheSameForEverySeed) {
  int guessed = 0;
  for (int seed = 0; seed < 12; ++seed) {
    const std::vector<std::string> given{"--seed", std::to_string(seed)};
    guessed += expect_same(story(joined(given, {"--temp", seed % 2 == 0 ? "0.3" : "0.9"})));
    guessed += expect_same(story(joined(given, {"--temp", "0.5", "--repeat-penalty", "1.05", "--top-k", "20",
                                                "--presence-penalty", "0.2", "--repeat-last-n", "30"})));
  }
  EXPECT_GT(guessed, 100);
}

TEST_F(Lookup, TokensAndProbabilitiesAreTheSameInTheSameOrder) {
  const auto reply = [&](const std::string& lookup) {
    nlohmann::json json = json_of(
        qgen(story({"--temp", "0.4", "--seed", "3", "--json", "--logprobs", "3", "--lookup", lookup})));
    json.erase("timings");
    return json;
  };
  EXPECT_EQ(reply("8"), reply("off"));
  const auto events = [&](const std::string& lookup) {
    const std::string out = qgen(told({"-n", "60", "--json-stream", "--lookup", lookup})).out;
    return out.substr(0, out.find("\"event\":\"end\""));
  };
  EXPECT_EQ(events("8"), events("off"));
}

TEST_F(Lookup, RepetitionIsGuessed) {
  const Result result = qgen(told({"-n", "100", "--stats"}));
  EXPECT_EQ(result.out, (kLetters + kLetters + kLetters + kLetters + kLetters).substr(3, 100));
  EXPECT_GT(accepted(result), 80);
}

TEST_F(Lookup, StopTextsWithinGuessesEndTheText) {
  for (std::size_t i = 4; i < 20; ++i) {
    expect_same(told({"--stop", kLetters.substr(i, 3)}));
    EXPECT_EQ(qgen(told({"--stop", kLetters.substr(i, 3)})).out, kLetters.substr(3, i - 3));
  }
}

TEST_F(Lookup, LimitsWithinGuessesAreExact) {
  for (int n = 0; n <= 14; ++n) {
    expect_same(told({"-n", std::to_string(n)}));
    expect_same(told({"-n", std::to_string(n), "--fail-on-length"}));
  }
  for (int context = 30; context <= 38; ++context) {
    expect_same(told({"-c", std::to_string(context)}));
    expect_same(told({"-c", std::to_string(context), "--context-full", "slide", "-n", "30", "--keep", "2"}));
  }
}

TEST_F(Lookup, EndTokensAreFoundWithinGuesses) {
  ScriptedModel model = alphabet();
  model.next['h'] = ScriptedModel::kEnd;
  const ModelFolder folder(model);
  EXPECT_EQ(expect_same({"-m", folder.path(), "-p", kLetters + "abc"}), 4) << "efgh after d";
  EXPECT_EQ(qgen({"-m", folder.path(), "-p", kLetters + "abc"}).out, "defgh");
}

TEST_F(Lookup, LogitsThatAreNotFiniteEndTheTextAtTheSamePlace) {
  ScriptedModel model = alphabet();
  model.chain("hN").not_finite = true;
  const ModelFolder folder(model);
  const std::vector<std::string> command{"-m", folder.path(), "-p", kLetters + "abc"};
  const Result off = qgen(joined(command, {"--lookup", "off"}));
  EXPECT_EQ(off.status, 5);
  EXPECT_EQ(off.out, "defghN");
  const Result on = qgen(command);
  EXPECT_EQ(on.status, 5);
  EXPECT_EQ(on.out, off.out);
  EXPECT_EQ(on.err, off.err);
}

TEST_F(Lookup, IsOffWhereItIsOfNoUse) {
  for (const std::string mode : {"naive", "fused"}) {
    EXPECT_THAT(qgen(told({"-n", "40", "--stats", "--mode", mode, "--lookup", "8"})).err,
                HasSubstr("lookup 0 proposed, 0 accepted"));
  }
  for (const std::string value : {"off", "0"}) {
    EXPECT_THAT(qgen(told({"-n", "40", "--stats", "--lookup", value})).err, HasSubstr("lookup 0 proposed"));
  }
}

}  // namespace
}  // namespace qgen::test
