#include "generate/loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "scripted_source.h"

namespace qgen {
namespace {

using ::testing::AnyOf;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Tokens 0..7 of the scripted model; 6 is an end token, 7 a control token.
const std::vector<std::string> kPieces{"a", "b", "c", " ", "\xF0\x9F", "\x98\x8A", "<end>", "<|control|>"};
constexpr TokenId kEnd = 6, kControl = 7;

class LoopTest : public ::testing::Test {
 protected:
  LoopTest() {
    source.pieces = kPieces;
    source.ends = {kEnd};
    source.specials = {kEnd, kControl};
    source.mask.assign(kPieces.size(), true);
    sampling.temperature = 0;
    hooks.sink = [this](const TokenEvent& event) {
      events.push_back({event.id, std::string(event.text)});
      return true;
    };
  }

  GenerateResult run(std::vector<TokenId> script) {
    source.script = std::move(script);
    source.restart();
    events.clear();
    Sampler sampler(sampling);
    return run_loop(source, sampler, prompt, options, hooks);
  }
  std::string streamed() const {
    std::string text;
    for (const auto& event : events) text += event.second;
    return text;
  }

  ScriptedSource source;
  std::vector<TokenId> prompt{0, 1, 2};
  SamplingOptions sampling;
  GenerateOptions options;
  GenerateHooks hooks;
  std::vector<std::pair<TokenId, std::string>> events;
};

TEST_F(LoopTest, EndTokenEndsAndIsNoPartOfTheReply) {
  const GenerateResult result = run({0, 1, kEnd});
  EXPECT_EQ(result.stop, StopReason::end);
  EXPECT_THAT(result.tokens, ElementsAre(0, 1));
  EXPECT_EQ(result.text, "ab");
  EXPECT_THAT(events, ElementsAre(std::pair(0, "a"), std::pair(1, "b")));
  EXPECT_EQ(result.problem, "");
}

TEST_F(LoopTest, EndTokenAtOnceGivesAnEmptyReply) {
  const GenerateResult result = run({kEnd});
  EXPECT_EQ(result.stop, StopReason::end);
  EXPECT_THAT(result.tokens, IsEmpty());
  EXPECT_THAT(events, IsEmpty());
  EXPECT_EQ(result.timings.decode_steps, 0);
  EXPECT_EQ(result.timings.decode_s, 0);
}

TEST_F(LoopTest, IgnoringTheEndGoesOnButPrintsNoControlToken) {
  options.ignore_end = true;
  options.max_tokens = 3;
  const GenerateResult result = run({0, kEnd, 1});
  EXPECT_EQ(result.stop, StopReason::length);
  EXPECT_THAT(result.tokens, ElementsAre(0, kEnd, 1));
  EXPECT_EQ(result.text, "ab");
}

TEST_F(LoopTest, BudgetIsExactAndEachTokenButTheLastCostsOneStep) {
  for (std::int64_t budget = 0; budget <= 3; ++budget) {
    options.max_tokens = budget;
    const GenerateResult result = run({0});
    EXPECT_EQ(result.stop, StopReason::length);
    EXPECT_EQ(std::ssize(result.tokens), budget);
    EXPECT_EQ(std::ssize(source.feeds), std::max<std::int64_t>(1, budget))
        << "the prompt, and a step a token";
    EXPECT_EQ(result.timings.decode_steps, std::max<std::int64_t>(0, budget - 1));
  }
}

TEST_F(LoopTest, EndTokenWithinTheBudgetIsFoundAndOnItsBorderIsNot) {
  options.max_tokens = 2;
  EXPECT_EQ(run({0, kEnd}).stop, StopReason::end);
  options.max_tokens = 1;
  EXPECT_EQ(run({0, kEnd}).stop, StopReason::length);
}

TEST_F(LoopTest, StopStringAcrossTokensIsCutOffButItsTokensCount) {
  options.stop = {"b c"};
  const GenerateResult result = run({0, 1, 3, 2, 0});
  EXPECT_EQ(result.stop, StopReason::stop);
  EXPECT_EQ(result.text, "a");
  EXPECT_THAT(result.tokens, ElementsAre(0, 1, 3, 2));
  EXPECT_THAT(events, ElementsAre(std::pair(0, "a"), std::pair(1, ""), std::pair(3, ""), std::pair(2, "")));
  EXPECT_EQ(source.feeds.size(), 4u);
}

TEST_F(LoopTest, TextHeldForAStopStringThatNeverComesIsShownAtTheEnd) {
  options.stop = {"b c"};
  const GenerateResult result = run({0, 1, 3, kEnd});
  EXPECT_EQ(result.stop, StopReason::end);
  EXPECT_EQ(result.text, "ab ");
  EXPECT_THAT(events,
              ElementsAre(std::pair(0, "a"), std::pair(1, ""), std::pair(3, ""), std::pair(-1, "b ")));
}

TEST_F(LoopTest, StopStringBetweenTheBytesOfACharacterStraddlesTokens) {
  options.stop = {"\xF0\x9F\x98\x8A"};
  const GenerateResult result = run({0, 4, 5, 1});
  EXPECT_EQ(result.stop, StopReason::stop);
  EXPECT_EQ(result.text, "a");
  EXPECT_EQ(streamed(), "a");
}

TEST_F(LoopTest, ControlTokensAreNotPrintedNorJoinedIntoStopStrings) {
  options.stop = {"<|control"};
  const GenerateResult result = run({0, kControl, 1, kEnd});
  EXPECT_EQ(result.stop, StopReason::end);
  EXPECT_EQ(result.text, "ab");
  EXPECT_THAT(result.tokens, ElementsAre(0, kControl, 1));
}

TEST_F(LoopTest, StopStringThatSpellsAControlTokenStopsAtIt) {
  options.stop = {"<|control|>"};
  const GenerateResult result = run({0, kControl, 1, kEnd});
  EXPECT_EQ(result.stop, StopReason::stop);
  EXPECT_EQ(result.text, "a");
}

TEST_F(LoopTest, CharacterSplitOverTokensIsShownWhole) {
  const GenerateResult result = run({0, 4, 5, kEnd});
  EXPECT_EQ(result.text, "a\xF0\x9F\x98\x8A");
  EXPECT_THAT(events, ElementsAre(std::pair(0, "a"), std::pair(4, ""), std::pair(5, "\xF0\x9F\x98\x8A")));
}

TEST_F(LoopTest, HalfACharacterAtTheEndIsPassedOnAsItIs) {
  options.max_tokens = 2;
  const GenerateResult result = run({0, 4});
  EXPECT_EQ(result.text, "a\xF0\x9F");
  EXPECT_THAT(events, ElementsAre(std::pair(0, "a"), std::pair(4, ""), std::pair(-1, "\xF0\x9F")));
}

TEST_F(LoopTest, FullContextStopsWhenPromptAndReplyFillIt) {
  source.positions = 5;
  const GenerateResult result = run({0, 1, 2});
  EXPECT_EQ(result.stop, StopReason::context);
  EXPECT_THAT(result.tokens, ElementsAre(0, 1));
  EXPECT_EQ(source.feeds.size(), 2u);
}

TEST_F(LoopTest, BudgetReachedWithTheContextIsALength) {
  source.positions = 5;
  options.max_tokens = 2;
  EXPECT_EQ(run({0, 1, 2}).stop, StopReason::length);
}

TEST_F(LoopTest, SlidingFeedsTheKeptAndTheLastTokensThatFit) {
  source.positions = 5;
  options.context_full = ContextFull::slide;
  options.keep = 1;
  options.max_tokens = 6;
  prompt = {5, 1, 2};
  const GenerateResult result = run({3, 0, 1, 2, 3, 0});
  EXPECT_EQ(result.stop, StopReason::length);
  EXPECT_THAT(result.tokens, ElementsAre(3, 0, 1, 2, 3, 0));
  EXPECT_EQ(source.slides, 3u);
  EXPECT_THAT(source.feeds[2].sequence, ElementsAre(5, 1, 2, 3, 0));
  EXPECT_THAT(source.feeds[3].sequence, ElementsAre(5, 2, 3, 0, 1));
  EXPECT_THAT(source.feeds[4].sequence, ElementsAre(5, 3, 0, 1, 2));
  EXPECT_THAT(source.feeds[5].sequence, ElementsAre(5, 0, 1, 2, 3));
}

TEST_F(LoopTest, SlidingCopesWithKeepingMoreThanTheContext) {
  source.positions = 4;
  options.context_full = ContextFull::slide;
  options.keep = 100;
  options.max_tokens = 5;
  EXPECT_EQ(run({3, 0, 1, 2, 3}).stop, StopReason::length);
  EXPECT_THAT(source.feeds.back().sequence, ElementsAre(0, 1, 2, 2));
}

TEST_F(LoopTest, CancelAfterFiveTokensKeepsTheTextSoFar) {
  std::atomic<bool> cancel = false;
  hooks.cancel = &cancel;
  options.stop = {"aaaa!"};
  hooks.sink = [&](const TokenEvent& event) {
    events.push_back({event.id, std::string(event.text)});
    cancel = events.size() >= 5;
    return true;
  };
  const GenerateResult result = run({0});
  EXPECT_EQ(result.stop, StopReason::interrupted);
  EXPECT_EQ(result.tokens.size(), 5u);
  EXPECT_EQ(result.text, "aaaaa");
  EXPECT_EQ(streamed(), "aaaaa") << "what was held back is shown too";
  EXPECT_EQ(source.feeds.size(), 5u);
}

TEST_F(LoopTest, CancelDuringThePromptEndsBetweenCuts) {
  std::atomic<bool> cancel = false;
  hooks.cancel = &cancel;
  prompt.assign(11, 0);
  std::vector<std::int64_t> seen;
  hooks.progress = [&](std::int64_t done, std::int64_t total) {
    EXPECT_EQ(total, 11);
    seen.push_back(done);
    cancel = done >= 8;
  };
  const GenerateResult result = run({0});
  EXPECT_EQ(result.stop, StopReason::interrupted);
  EXPECT_THAT(seen, ElementsAre(4, 8));
  EXPECT_EQ(result.timings.prefill_tokens, 8);
  EXPECT_THAT(events, IsEmpty());
}

TEST_F(LoopTest, SinkThatRefusesEndsTheTextAndIsNotCalledAgain) {
  options.stop = {"bc"};
  hooks.sink = [&](const TokenEvent& event) {
    events.push_back({event.id, std::string(event.text)});
    return events.size() < 2;
  };
  const GenerateResult result = run({0, 1, 1});
  EXPECT_EQ(result.stop, StopReason::interrupted);
  EXPECT_EQ(events.size(), 2u);
  EXPECT_EQ(source.feeds.size(), 2u);
}

TEST_F(LoopTest, WorksWithoutHooks) {
  hooks = {};
  EXPECT_EQ(run({0, 1, kEnd}).text, "ab");
}

TEST_F(LoopTest, LogitThatIsNotFiniteIsAnErrorThatNamesThePosition) {
  std::vector<float> bad(kPieces.size(), 0.0f);
  bad[2] = std::nanf("");
  source.odd[2] = bad;
  sampling.temperature = 0.7;
  GenerateResult result = run({0, 1, 2});
  EXPECT_EQ(result.stop, StopReason::error);
  EXPECT_EQ(result.problem, "logit 2 is nan at position 4");
  EXPECT_EQ(result.problem_kind, ErrorKind::file);
  EXPECT_EQ(result.text, "ab");
  EXPECT_EQ(streamed(), "ab");
}

TEST_F(LoopTest, GreedyReportsLogitsThatAreNotFiniteToo) {
  std::vector<float> bad(kPieces.size(), 0.0f);
  bad[3] = std::numeric_limits<float>::infinity();
  source.odd[0] = bad;
  const GenerateResult result = run({0});
  EXPECT_EQ(result.stop, StopReason::error);
  EXPECT_EQ(result.problem, "logit 3 is not finite at position 2");
}

TEST_F(LoopTest, MemoryThatEndsWithinTheReplyKeepsWhatThereIs) {
  options.stop = {"bc"};
  for (const bool as_container : {false, true}) {
    source.fails_as_container = as_container;
    source.most_positions = 4;
    const GenerateResult result = run({0, 1, 2});
    EXPECT_EQ(result.stop, StopReason::error);
    EXPECT_EQ(result.problem_kind, ErrorKind::memory);
    EXPECT_EQ(result.problem, as_container ? "not enough memory" : "no memory");
    EXPECT_THAT(result.tokens, ElementsAre(0, 1));
    EXPECT_EQ(streamed(), "ab");
    source.most_positions = 2;
    EXPECT_EQ(run({0}).problem_kind, ErrorKind::memory) << "in the prompt";
  }
}

TEST_F(LoopTest, AsksForTheBestAloneOnlyWherePlainGreedyAllowsIt) {
  options.max_tokens = 2;
  run({0});
  for (const auto& feed : source.feeds) EXPECT_EQ(feed.want, Want::best);
  options.logprobs = 0;
  run({0});
  for (const auto& feed : source.feeds) EXPECT_EQ(feed.want, Want::last);
  options.logprobs = -1;
  sampling.repetition_penalty = 1.1;
  run({0});
  for (const auto& feed : source.feeds) EXPECT_EQ(feed.want, Want::last);
}

TEST_F(LoopTest, PaddedRowsAreNeverChosen) {
  source.mask[2] = false;
  source.mask.resize(4);
  sampling.temperature = 1;
  options.max_tokens = 1;
  std::vector<float> padded(kPieces.size(), 30.0f);
  padded[0] = padded[1] = padded[3] = 0;
  source.odd[0] = padded;
  EXPECT_THAT(run({2}).tokens.at(0), AnyOf(0, 1, 3));
}

TEST_F(LoopTest, LogprobsComeForEachTokenOfTheReply) {
  options.logprobs = 2;
  const GenerateResult result = run({0, 1, kEnd});
  ASSERT_EQ(result.logprobs.size(), 2u);
  EXPECT_EQ(result.logprobs[0].chosen.id, 0);
  EXPECT_EQ(result.logprobs[1].chosen.id, 1);
  ASSERT_EQ(result.logprobs[1].top.size(), 2u);
  EXPECT_EQ(result.logprobs[1].top[0].id, 1);
  EXPECT_EQ(result.logprobs[1].top[1].id, 0);
  EXPECT_NEAR(result.logprobs[0].chosen.logprob, -std::log1p(7 * std::exp(-20.0)), 1e-12);
}

TEST_F(LoopTest, SameSeedSameReplyAndAnotherSeedAnother) {
  sampling.temperature = 1;
  sampling.top_p = 1;
  options.max_tokens = 40;
  options.ignore_end = true;
  for (std::size_t n = 0; n < 200; ++n) source.odd[n] = std::vector<float>(kPieces.size(), 0.0f);
  std::vector<std::vector<TokenId>> replies;
  for (const std::uint64_t seed : {0u, 0u, 1u}) {
    sampling.seed = seed;
    replies.push_back(run({0}).tokens);
  }
  EXPECT_EQ(replies[0], replies[1]);
  EXPECT_NE(replies[0], replies[2]);
}

TEST_F(LoopTest, PenaltiesSeePromptAndReply) {
  sampling.repetition_penalty = 100;
  options.max_tokens = 3;
  options.ignore_end = true;
  std::vector<float> level(kPieces.size(), 1.0f);
  for (std::size_t n = 0; n < 3; ++n) source.odd[n] = level;
  EXPECT_THAT(run({0}).tokens, ElementsAre(3, 4, 5)) << "0, 1, 2 are the prompt";
}

TEST_F(LoopTest, TimingsAreOrderedAndFinite) {
  const Timings t = run({0, 1, 2, kEnd}).timings;
  EXPECT_EQ(t.prefill_tokens, 3);
  EXPECT_EQ(t.decode_steps, 3);
  EXPECT_GE(t.prefill_s, 0);
  EXPECT_GE(t.first_token_s, t.prefill_s);
  EXPECT_GT(t.decode_s, 0);
}

TEST(StopReasonNames, AreTheWordsOfReports) {
  EXPECT_EQ(to_string(StopReason::end), "end");
  EXPECT_EQ(to_string(StopReason::stop), "stop");
  EXPECT_EQ(to_string(StopReason::length), "length");
  EXPECT_EQ(to_string(StopReason::context), "context");
  EXPECT_EQ(to_string(StopReason::thinking), "thinking");
  EXPECT_EQ(to_string(StopReason::interrupted), "interrupted");
  EXPECT_EQ(to_string(StopReason::error), "error");
}

}  // namespace
}  // namespace qgen
