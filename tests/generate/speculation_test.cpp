// Guessing tokens from the text itself changes how many steps a text takes and nothing else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <random>

#include "generate/guess_budget.h"
#include "generate/loop.h"
#include "scripted_source.h"

namespace qgen {
namespace {

using ::testing::Each;
using ::testing::Le;

const std::vector<std::string> kPieces{"a",           "b", "c",        " ",  "\xF0\x9F", "\x98\x8A", "<end>",
                                       "<|control|>", "d", "\xE5\x8D", "ab", "bca",      "padding"};
constexpr TokenId kEnd = 6, kControl = 7, kPadding = 12;

/// Logits follow from the last two tokens, so that texts repeat themselves, and a little from every token of
/// the sequence, so that whatever is left behind or taken away wrongly shows.
class HashedSource final : public ScriptedSource {
 public:
  std::uint32_t salt = 0;
  float whims = 1;  ///< how much the whole sequence weighs

 protected:
  std::vector<float> row(const std::vector<TokenId>& sequence, std::size_t reply) const override {
    if (const auto found = odd.find(reply); found != odd.end()) return found->second;
    std::uint32_t all = salt, last = salt;
    for (const TokenId id : sequence) all = mixed(all, id);
    for (std::size_t i = std::max<std::size_t>(sequence.size(), 2) - 2; i < sequence.size(); ++i)
      last = mixed(last, sequence[i]);
    std::vector<float> logits;
    for (std::size_t id = 0; id < pieces.size(); ++id) {
      const auto one = static_cast<TokenId>(id);
      logits.push_back(9 * fraction(mixed(last, one)) + whims * fraction(mixed(all, one)));
    }
    logits[kEnd] -= 4;
    logits[kPadding] = 50;
    return logits;
  }

 private:
  static std::uint32_t mixed(std::uint32_t hash, TokenId id) {
    hash = (hash ^ static_cast<std::uint32_t>(id + 1)) * 0x9E3779B1U;
    return hash ^ (hash >> 15);
  }
  static float fraction(std::uint32_t hash) {
    return static_cast<float>((hash * 0x85EBCA6BU) >> 8) * 0x1p-24f;
  }
};

/// All that a caller can see of a run.
struct Outcome {
  GenerateResult result;
  std::vector<std::pair<TokenId, std::string>> events;
  std::vector<TokenId> sequence;  ///< what the session holds at the end
  std::size_t slides = 0, steps = 0;
};

void expect_equal(const TokenLogprob& a, const TokenLogprob& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(std::bit_cast<std::uint64_t>(a.logprob), std::bit_cast<std::uint64_t>(b.logprob));
}

void expect_equal(const Outcome& a, const Outcome& b) {
  EXPECT_EQ(a.result.stop, b.result.stop);
  EXPECT_EQ(a.result.tokens, b.result.tokens);
  EXPECT_EQ(a.result.text, b.result.text);
  EXPECT_EQ(a.result.problem, b.result.problem);
  EXPECT_EQ(a.result.timings.decode_steps, b.result.timings.decode_steps);
  EXPECT_EQ(a.events, b.events);
  EXPECT_EQ(a.sequence, b.sequence);
  EXPECT_EQ(a.slides, b.slides);
  ASSERT_EQ(a.result.logprobs.size(), b.result.logprobs.size());
  for (std::size_t i = 0; i < a.result.logprobs.size(); ++i) {
    const TokenLogprobs& left = a.result.logprobs[i];
    const TokenLogprobs& right = b.result.logprobs[i];
    expect_equal(left.chosen, right.chosen);
    ASSERT_EQ(left.top.size(), right.top.size());
    for (std::size_t j = 0; j < left.top.size(); ++j) expect_equal(left.top[j], right.top[j]);
  }
}

class Speculation : public ::testing::Test {
 protected:
  Speculation() {
    source.pieces = kPieces;
    source.ends = {kEnd};
    source.specials = {kEnd, kControl};
    source.mask.assign(kPieces.size(), true);
    source.mask[kPadding] = false;
    sampling.temperature = 0;
    options.max_tokens = 200;
  }

  Outcome run(std::int64_t lookup) {
    source.restart();
    options.lookup = lookup;
    Outcome outcome;
    std::atomic<bool> cancel = false;
    GenerateHooks hooks;
    hooks.cancel = &cancel;
    hooks.sink = [&](const TokenEvent& event) {
      outcome.events.emplace_back(event.id, std::string(event.text));
      cancel = outcome.events.size() >= cancel_after;
      return outcome.events.size() < gone_after;
    };
    Sampler sampler(sampling);
    outcome.result = run_loop(source, sampler, prompt, options, hooks);
    outcome.sequence = source.sequence();
    outcome.slides = source.slides;
    outcome.steps = source.feeds.size() - 1;
    return outcome;
  }

  /// Returns how many guesses came true.
  std::int64_t expect_same_on_and_off(std::int64_t lookup) {
    const Outcome off = run(0), on = run(lookup);
    expect_equal(on, off);
    EXPECT_EQ(off.result.lookup.proposed, 0);
    EXPECT_EQ(on.steps + static_cast<std::size_t>(on.result.lookup.accepted), off.steps);
    return on.result.lookup.accepted;
  }

  HashedSource source;
  std::vector<TokenId> prompt{0, 1, 2};
  SamplingOptions sampling;
  GenerateOptions options;
  std::size_t cancel_after = 1'000'000, gone_after = 1'000'000;
};

TEST_F(Speculation, GreedyTextsAreTheSame) {
  std::int64_t accepted = 0;
  for (source.salt = 0; source.salt < 200; ++source.salt)
    accepted += expect_same_on_and_off(1 + source.salt % 15);
  EXPECT_GT(accepted, 5000);
}

TEST_F(Speculation, SampledTextsAreTheSameForEverySeed) {
  std::int64_t accepted = 0;
  for (sampling.seed = 0; sampling.seed < 300; ++sampling.seed) {
    source.salt = static_cast<std::uint32_t>(sampling.seed);
    sampling.temperature = 0.3 + 0.3 * static_cast<double>(sampling.seed % 4);
    accepted += expect_same_on_and_off(8);
  }
  EXPECT_GT(accepted, 5000);
}

/// Everything that may end a text, hold it back or look at its past, at once.
TEST_F(Speculation, AllSettingsTogetherGiveTheSame) {
  std::mt19937 random(7);
  const auto below = [&random](int n) { return std::uniform_int_distribution<int>(0, n - 1)(random); };
  const std::vector<std::string> stops{"abc", "ca ",
                                       "\xF0\x9F\x98\x8A"
                                       "a",
                                       "<|control|>", "bcabca"};
  std::int64_t accepted = 0;
  for (int round = 0; round < 1000; ++round) {
    SCOPED_TRACE(round);
    source.salt = static_cast<std::uint32_t>(below(1 << 30));
    source.whims = static_cast<float>(below(4));
    source.positions = below(2) != 0 ? 1000 : 8 + below(60);
    sampling = {};
    sampling.seed = static_cast<std::uint64_t>(below(1 << 30));
    sampling.temperature = below(3) == 0 ? 0 : 0.4;
    sampling.top_p = below(2) != 0 ? 1 : 0.9;
    sampling.top_k = below(2) != 0 ? 0 : 3;
    sampling.repetition_penalty = below(3) == 0 ? 1.2 : 1;
    sampling.frequency_penalty = below(3) == 0 ? 0.1 : 0;
    sampling.penalty_window = below(3) == 0 ? 5 : -1;
    options = {};
    options.max_tokens = below(4) == 0 && source.positions < 100 ? -1 : below(150);
    options.ignore_end = options.max_tokens >= 0 && below(2) != 0;
    options.context_full = options.max_tokens >= 0 && below(2) != 0 ? ContextFull::slide : ContextFull::stop;
    options.keep = below(6);
    options.logprobs = below(3) == 0 ? 3 : -1;
    if (below(2) != 0)
      options.stop = {stops[static_cast<std::size_t>(below(5))], stops[static_cast<std::size_t>(below(5))]};
    cancel_after = static_cast<std::size_t>(below(4) == 0 ? 1 + below(80) : 1'000'000);
    gone_after = static_cast<std::size_t>(below(6) == 0 ? 1 + below(80) : 1'000'000);
    prompt.resize(static_cast<std::size_t>(1 + below(7)));
    for (TokenId& id : prompt) id = static_cast<TokenId>(below(12));
    accepted += expect_same_on_and_off(1 + below(15));
  }
  EXPECT_GT(accepted, 5000);
}

TEST_F(Speculation, RepetitionTakesFewSteps) {
  source.whims = 0;  // greedy texts run into a circle
  options.ignore_end = true;
  const Outcome on = run(8);
  EXPECT_EQ(on.result.tokens.size(), 200U);
  EXPECT_LT(on.steps, 70U);
  EXPECT_GT(on.result.lookup.accepted, 130);
  EXPECT_LE(on.result.lookup.accepted, on.result.lookup.proposed);
}

TEST_F(Speculation, PromptsAreContinuedFrom) {
  source.whims = 0;
  options.ignore_end = true;
  options.max_tokens = 60;
  const std::vector<TokenId> reply = run(0).result.tokens;
  prompt.insert(prompt.end(), reply.begin(), reply.end());
  prompt.insert(prompt.end(), {0, 1, 2});
  options.max_tokens = 30;
  EXPECT_LT(run(8).steps, 10U);
}

TEST_F(Speculation, NoMoreIsComputedThanMayBeAskedFor) {
  source.whims = 0;
  options.ignore_end = true;
  for (std::int64_t budget = 0; budget < 60; ++budget) {
    options.max_tokens = budget;
    source.positions = 50;
    const Outcome on = run(15);
    expect_equal(on, run(0));
    run(15);
    for (const auto& feed : source.feeds) {
      EXPECT_LT(std::ssize(feed.sequence), std::ssize(prompt) + std::max<std::int64_t>(budget, 1));
    }
  }
  options.max_tokens = -1;
  run(15);
  std::size_t longest = 0;
  for (const auto& feed : source.feeds) longest = std::max(longest, feed.sequence.size());
  EXPECT_LE(longest, 50U);
}

TEST_F(Speculation, StepsHaveAtMostTheTokensThatAreExact) {
  source.whims = 0;
  options.ignore_end = true;
  options.lookup = 100;
  run(100);
  std::vector<std::size_t> sizes;
  for (const auto& feed : source.feeds) sizes.push_back(feed.fresh);
  EXPECT_THAT(sizes, Each(Le(16U)));
  EXPECT_EQ(*std::ranges::max_element(sizes), 16U);
}

TEST_F(Speculation, WhereGuessesFailFewAreMade) {
  source.whims = 1000;  // the last tokens tell nothing
  options.ignore_end = true;
  options.max_tokens = 600;
  source.mask.assign(6, true);  // few tokens, so that n-grams repeat by chance
  const Outcome on = run(8);
  const auto wrong = on.result.lookup.proposed - on.result.lookup.accepted;
  EXPECT_LE(wrong, 8 + 600 / 16 + 8 * on.result.lookup.accepted);
  EXPECT_GT(on.result.lookup.proposed, 8);
  expect_equal(on, run(0));
}

TEST_F(Speculation, LogitsThatAreNotFiniteAreFoundAtTheSamePosition) {
  source.whims = 0;
  options.ignore_end = true;
  for (const double temperature : {0.0, 0.001}) {
    sampling.temperature = temperature;
    for (std::size_t n = 20; n < 40; ++n) {
      source.odd = {{n, std::vector<float>(kPieces.size(), std::nanf(""))}};
      EXPECT_GT(expect_same_on_and_off(8), 5);
      EXPECT_EQ(run(8).result.problem, run(0).result.problem);
      EXPECT_THAT(run(8).result.problem, ::testing::EndsWith("at position " + std::to_string(n + 2)));
    }
  }
}

TEST_F(Speculation, BannedIdsInTheTextAreNeverTaken) {
  source.whims = 0;
  options.ignore_end = true;
  prompt = {0, 1, kPadding, 0, 1, kPadding, 0, 1};
  for (source.salt = 0; source.salt < 50; ++source.salt) {
    const Outcome on = run(8);
    EXPECT_THAT(on.result.tokens, Each(::testing::Ne(kPadding)));
    expect_equal(on, run(0));
  }
}

TEST_F(Speculation, LittleMemoryMeansOneTokenAtATime) {
  source.whims = 0;
  options.ignore_end = true;
  source.most_rows = 2;
  for (source.fails_as_container = false;; source.fails_as_container = true) {
    expect_equal(run(8), run(0));
    EXPECT_LT(run(8).result.lookup.accepted, 10);
    if (source.fails_as_container) break;
  }
}

TEST_F(Speculation, MemoryThatEndsIsFoundAtTheSamePosition) {
  source.whims = 0;
  options.ignore_end = true;
  for (source.most_positions = 20; source.most_positions < 40; ++source.most_positions) {
    const Outcome on = run(8);
    EXPECT_EQ(on.result.stop, StopReason::error);
    expect_equal(on, run(0));
  }
}

TEST(GuessBudget, PaysForGuessesWithHits) {
  GuessBudget budget;
  std::size_t wrong = 0;
  while (budget.affordable() > 0) budget.spend(1), ++wrong;
  EXPECT_EQ(wrong, 8U) << "a new text may lose one step";
  budget.hit();
  EXPECT_EQ(budget.affordable(), 8U);
  for (int i = 0; i < 100; ++i) budget.hit();
  EXPECT_EQ(budget.affordable(), 16U) << "good times are soon forgotten";
}

TEST(GuessBudget, TriesAgainEverySoOften) {
  GuessBudget budget;
  budget.spend(budget.affordable());
  int tokens = 0;
  for (; budget.affordable() == 0; ++tokens) budget.token();
  EXPECT_EQ(tokens, 16);
}

}  // namespace
}  // namespace qgen
