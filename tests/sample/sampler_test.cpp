#include "qgen/sample/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

namespace qgen {
namespace {

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

SamplingOptions neutral() {
  SamplingOptions options;
  options.temperature = 1;
  options.top_p = 1;
  return options;
}

SamplingOptions greedy() {
  SamplingOptions options = neutral();
  options.temperature = 0;
  return options;
}

/// What `count` draws at successive positions give.
std::vector<TokenId> draws(const SamplingOptions& options, const std::vector<float>& logits,
                           std::size_t count) {
  Sampler sampler(options);
  std::vector<TokenId> reply;
  while (reply.size() < count) reply.push_back(sampler.choose(logits, {{}, reply}).id);
  return reply;
}

std::set<TokenId> support(const SamplingOptions& options, const std::vector<float>& logits,
                          std::size_t count = 2000) {
  const auto ids = draws(options, logits, count);
  return {ids.begin(), ids.end()};
}

TEST(Greedy, TakesTheLargestAndOfEqualOnesTheLowestId) {
  EXPECT_EQ(Sampler(greedy()).choose(std::vector<float>{1, 3, 2, 3}, {}).id, 1);
  EXPECT_EQ(Sampler(greedy()).choose(std::vector<float>(100, -7.0f), {}).id, 0);
  EXPECT_EQ(Sampler(greedy()).choose(std::vector<float>{-kInf, -5, -kInf}, {}).id, 1);
}

TEST(Greedy, IgnoresEveryFilter) {
  SamplingOptions options = greedy();
  options.top_k = 2;
  options.top_p = 0;
  options.min_p = 1;
  EXPECT_EQ(Sampler(options).choose(std::vector<float>{1, 3, 3, 2}, {}).id, 1);
  EXPECT_TRUE(Sampler(options).is_plain_greedy());
}

TEST(Greedy, IsTheBestAfterPenalties) {
  SamplingOptions options = greedy();
  options.repetition_penalty = 2;
  const std::vector<TokenId> prompt{1};
  EXPECT_EQ(Sampler(options).choose(std::vector<float>{2, 3, 1}, {prompt, {}}).id, 0);
  EXPECT_FALSE(Sampler(options).is_plain_greedy());
}

TEST(PlainGreedy, NeedsTemperatureZeroAndNoPenaltyInForce) {
  EXPECT_FALSE(Sampler(neutral()).is_plain_greedy());
  for (const auto field : {&SamplingOptions::presence_penalty, &SamplingOptions::frequency_penalty}) {
    SamplingOptions options = greedy();
    options.*field = 0.5;
    EXPECT_FALSE(Sampler(options).is_plain_greedy());
    options.penalty_window = 0;
    EXPECT_TRUE(Sampler(options).is_plain_greedy());
  }
  SamplingOptions options = greedy();
  options.repetition_penalty = 1.1;
  options.order = {"top_p", "temperature"};
  EXPECT_TRUE(Sampler(options).is_plain_greedy()) << "penalties left out of the order";
}

TEST(Temperature, ExtremesNeitherOverflowNorFail) {
  for (const double cold : {1e-3, 1e-30, 1e-45, 1e-300, 5e-324}) {
    SamplingOptions options = neutral();
    options.temperature = cold;
    EXPECT_EQ(support(options, {1, 3, 2}, 50), std::set<TokenId>{1}) << cold;
    EXPECT_EQ(support(options, {-3, -1, -2}, 50), std::set<TokenId>{1}) << cold;
    EXPECT_EQ(support(options, {0, 0, -1}, 200), (std::set<TokenId>{0, 1})) << cold;
    EXPECT_EQ(support(options, {1e38f, 3e38f, -3e38f}, 50), std::set<TokenId>{1}) << cold;
  }
  SamplingOptions options = neutral();
  options.temperature = 1000;
  EXPECT_EQ(support(options, {-100, 100, 0}).size(), 3u);
}

TEST(TopK, ZeroAndMinusOneAreOffAndAHugeOneIsTheVocabulary) {
  SamplingOptions options = neutral();
  options.temperature = 1.2;
  const std::vector<float> logits{1, 2, 0, 1.5f};
  const auto expected = draws(options, logits, 200);
  EXPECT_EQ(std::set<TokenId>(expected.begin(), expected.end()).size(), 4u);
  for (const std::int64_t k : {std::int64_t{-1}, std::int64_t{4}, std::int64_t{1} << 59}) {
    options.top_k = k;
    EXPECT_EQ(draws(options, logits, 200), expected) << k;
  }
  options.top_k = 1;
  EXPECT_EQ(support(options, logits), std::set<TokenId>{1});
}

TEST(TopP, KeepsTheSmallestSetThatReachesP) {
  // Exact sums, right on the border: ten equal candidates are a tenth each.
  for (int kept = 1; kept <= 9; ++kept) {
    SamplingOptions options = neutral();
    options.top_p = kept / 10.0;
    EXPECT_EQ(support(options, std::vector<float>(10, 1.0f)).size(), static_cast<std::size_t>(kept));
  }
}

TEST(TopP, ZeroKeepsOneCandidateTheLowestOfEqualOnes) {
  SamplingOptions options = neutral();
  options.top_p = 0;
  EXPECT_EQ(support(options, {1, 3, 2, 3}), std::set<TokenId>{1});
}

TEST(MinP, OneKeepsOnlyTheBest) {
  SamplingOptions options = neutral();
  options.min_p = 1;
  EXPECT_EQ(support(options, {1, 3, 2, 3}), (std::set<TokenId>{1, 3}));
}

TEST(Order, TemperatureBeforeOrAfterTopPKeepsDifferentSets) {
  SamplingOptions options = neutral();
  options.temperature = 0.5;
  options.top_p = 0.8;
  EXPECT_EQ(support(options, {3, 2, 1}), std::set<TokenId>{0});
  options.order = {"penalties", "top_k", "top_p", "min_p", "temperature"};
  EXPECT_EQ(support(options, {3, 2, 1}), (std::set<TokenId>{0, 1}));
}

TEST(Order, StepsLeftOutDoNotRun) {
  SamplingOptions options = neutral();
  options.top_k = 1;
  options.order = {"temperature"};
  EXPECT_EQ(support(options, {3, 2, 1}).size(), 3u);
}

/// The greedy choice among a penalised token 0 and a rival: tells on which side of the rival the penalty put
/// it.
bool beats_rival(SamplingOptions options, float logit, float rival, const SampleContext& context) {
  options.temperature = 0;
  return Sampler(options).choose(std::vector<float>{logit, rival}, context).id == 0;
}

TEST(RepetitionPenalty, CountsATokenOnceHoweverOftenItOccurs) {
  SamplingOptions options = neutral();
  options.repetition_penalty = 1.1;
  const std::vector<TokenId> prompt(40, 0), reply(40, 0);
  EXPECT_TRUE(beats_rival(options, 10, 9.09f, {prompt, reply}));
  EXPECT_FALSE(beats_rival(options, 10, 9.1f, {prompt, reply}));
}

TEST(RepetitionPenalty, LooksAsFarBackAsItsWindow) {
  SamplingOptions options = neutral();
  options.repetition_penalty = 1.5;
  std::vector<TokenId> seen(25, 1);
  seen[0] = 0;  // 25 tokens ago
  const auto split = std::span<const TokenId>(seen);
  for (const SampleContext& context :
       {SampleContext{split, {}}, {{}, split}, {split.first(10), split.last(15)}}) {
    options.penalty_window = 20;
    EXPECT_TRUE(beats_rival(options, -2, -2.1f / 1.5f, context)) << "rival -2.1, token -2";
    options.penalty_window = 24;
    EXPECT_TRUE(beats_rival(options, -2, -2.1f / 1.5f, context));
    for (const std::int64_t window : {25, 64, -1}) {
      options.penalty_window = window;
      EXPECT_TRUE(beats_rival(options, -2, -3.1f / 1.5f, context)) << "rival -3.1, token -3";
      EXPECT_FALSE(beats_rival(options, -2, -2.9f / 1.5f, context)) << "rival -2.9, token -3";
    }
  }
}

TEST(PresenceAndFrequencyPenalty, CountTheReplyAlone) {
  const std::vector<TokenId> three(3, 0);
  SamplingOptions options = neutral();
  options.presence_penalty = 1;
  EXPECT_TRUE(beats_rival(options, 5, 4.9f, {three, {}}));
  EXPECT_TRUE(beats_rival(options, 5, 3.9f, {{}, three}));
  EXPECT_FALSE(beats_rival(options, 5, 4.1f, {{}, three}));
  options = neutral();
  options.frequency_penalty = 1;
  EXPECT_TRUE(beats_rival(options, 5, 4.9f, {three, {}}));
  EXPECT_TRUE(beats_rival(options, 5, 1.9f, {{}, three}));
  EXPECT_FALSE(beats_rival(options, 5, 2.1f, {{}, three}));
  options.penalty_window = 2;
  EXPECT_TRUE(beats_rival(options, 5, 2.9f, {{}, three}));
  EXPECT_FALSE(beats_rival(options, 5, 3.1f, {{}, three}));
}

TEST(Penalties, IgnoreIdsOutsideTheVocabulary) {
  SamplingOptions options = neutral();
  options.repetition_penalty = 2;
  options.presence_penalty = 2;
  options.frequency_penalty = 2;
  const std::vector<TokenId> strange{-1, 2, 1000000, std::numeric_limits<TokenId>::max(),
                                     std::numeric_limits<TokenId>::min()};
  EXPECT_TRUE(beats_rival(options, 1, 0.9f, {strange, strange}));
}

TEST(Penalties, NeverMakeALogitInfinite) {
  SamplingOptions options = neutral();
  options.repetition_penalty = 100;
  const std::vector<TokenId> all{0, 1};
  EXPECT_EQ(Sampler(options).choose(std::vector<float>{-3e38f, -3e38f}, {all, {}}).problem, "");
  options.repetition_penalty = 0.01;
  EXPECT_EQ(Sampler(options).choose(std::vector<float>{3e38f, 3e38f}, {all, {}}).problem, "");
}

TEST(NonFiniteLogits, AreNoChoiceAndNameTheLowestId) {
  for (const double temperature : {0.0, 0.7}) {
    SamplingOptions options = neutral();
    options.temperature = temperature;
    Sampler sampler(options);
    const auto problem = [&](std::vector<float> logits) {
      const SampleResult result = sampler.choose(logits, {});
      EXPECT_EQ(result.id, -1);
      return result.problem;
    };
    EXPECT_EQ(problem({1, kNan, 3, kInf}), "logit 1 is nan");
    EXPECT_EQ(problem({kInf, 1, kNan}), "logit 0 is inf");
    EXPECT_EQ(problem({kNan, kNan}), "logit 0 is nan");
    EXPECT_EQ(problem({-kInf, -kInf}), "no logit is above -inf");
    EXPECT_EQ(problem({}), "no logit is above -inf");
    EXPECT_EQ(sampler.choose(std::vector<float>{-kInf, 2}, {}).id, 1) << "a later step works again";
  }
}

TEST(Allowed, KeepsOtherIdsOutAndTheirLogitsUnread) {
  Sampler sampler(neutral());
  sampler.set_allowed({false, true, false, true, true, false});
  const std::vector<float> logits{kNan, 1, kInf, 1, -kInf, 50, kNan};
  std::set<TokenId> seen;
  std::vector<TokenId> reply;
  for (int i = 0; i < 200; ++i) {
    reply.push_back(sampler.choose(logits, {{}, reply}).id);
    seen.insert(reply.back());
  }
  EXPECT_EQ(seen, (std::set<TokenId>{1, 3}));
  EXPECT_EQ(sampler.choose(std::vector<float>{0, 0, 0, kNan}, {}).problem, "logit 3 is nan");
  sampler.set_allowed(std::vector<bool>(6, false));
  EXPECT_EQ(sampler.choose(logits, {}).problem, "no logit is above -inf");
}

TEST(Allowed, AppliesToGreedyToo) {
  Sampler sampler(greedy());
  std::vector<bool> mask(1000, true);
  mask[700] = false;
  sampler.set_allowed(mask);
  std::vector<float> logits(1024, 0.0f);
  logits[700] = 9;
  logits[1010] = 9;
  logits[650] = 1;
  EXPECT_EQ(sampler.choose(logits, {}).id, 650);
}

TEST(Seed, SameSeedSameChoicesAndZeroIsOrdinary) {
  const std::vector<float> logits(1000, 0.0f);
  std::set<std::vector<TokenId>> replies;
  for (const std::uint64_t seed :
       {std::uint64_t{0}, std::uint64_t{1}, std::uint64_t{2}, ~std::uint64_t{0}, std::uint64_t{1} << 40}) {
    SamplingOptions options = neutral();
    options.seed = seed;
    const auto reply = draws(options, logits, 200);
    EXPECT_EQ(draws(options, logits, 200), reply);
    // 200 draws from 1000 give 1000 (1 - (1 - 1/1000)^200) = 181 distinct ids, standard deviation 3.9.
    EXPECT_NEAR(static_cast<double>(std::set<TokenId>(reply.begin(), reply.end()).size()), 181, 20);
    replies.insert(reply);
  }
  EXPECT_EQ(replies.size(), 5u);
}

TEST(Seed, ChoiceDependsOnPositionAndLogitsNotOnWhatWasChosenBefore) {
  const std::vector<float> logits{0, 1, 2, 0.5f, 1.5f};
  const auto reply = draws(neutral(), logits, 100);
  Sampler other(neutral());
  for (std::size_t n = 100; n-- > 0;) {
    const std::vector<TokenId> different(n, 3);
    EXPECT_EQ(other.choose(logits, {{}, different}).id, reply[n]);
  }
}

TEST(Sampler, ForgetsWhatWasAllowedBefore) {
  SamplingOptions options;
  options.temperature = 0;
  options.presence_penalty = 0.5;  // not plain greedy, which a device does alone
  Sampler sampler(options);
  const std::vector<float> logits{1, 5, 3, 4};
  EXPECT_EQ(sampler.choose(logits, {}).id, 1);
  sampler.set_allowed({true, false, true, true});
  EXPECT_EQ(sampler.choose(logits, {}).id, 3);
  sampler.set_allowed({true, false, true, false});
  EXPECT_EQ(sampler.choose(logits, {}).id, 2);
  EXPECT_EQ(sampler.choose(std::vector<float>{6, 5, 3}, {}).id, 0);
}

}  // namespace
}  // namespace qgen
