#include "generate/logprobs.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

namespace qgen {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();

std::vector<TokenId> ids_of(const TokenLogprobs& logprobs) {
  std::vector<TokenId> ids;
  for (const TokenLogprob& token : logprobs.top) ids.push_back(token.id);
  return ids;
}

TEST(Logprobs, AreTheLogOfTheSoftmaxOfAllRows) {
  // log_softmax([1, 2, 3, 4]) by torch: -3.4401896, -2.4401896, -1.4401897, -0.4401897.
  const auto got = read_logprobs(std::vector<float>{1, 2, 3, 4}, {true, true, true, false}, 1, 2);
  EXPECT_EQ(got.chosen.id, 1);
  EXPECT_NEAR(got.chosen.logprob, -2.4401896, 1e-6);
  EXPECT_EQ(ids_of(got), (std::vector<TokenId>{2, 1}));
  EXPECT_NEAR(got.top[0].logprob, -1.4401897, 1e-6);
}

TEST(Logprobs, DoNotOverflowAndAreNeverPositive) {
  const auto got = read_logprobs(std::vector<float>{3e38f, -3e38f, 1000}, {true, true, true}, 0, 3);
  EXPECT_EQ(got.chosen.logprob, 0);
  for (const TokenLogprob& token : got.top) {
    EXPECT_TRUE(std::isfinite(token.logprob));
    EXPECT_LE(token.logprob, 0);
  }
}

TEST(Logprobs, StayFiniteWhateverTheRowsOutsideTheVocabularyHold) {
  const auto got = read_logprobs(std::vector<float>{0, 0, NAN, kInf, -kInf}, {true, true, false}, 0, 5);
  EXPECT_NEAR(got.chosen.logprob, -std::log(2.0), 1e-12);
  EXPECT_EQ(ids_of(got), (std::vector<TokenId>{0, 1}));
}

TEST(Logprobs, ListTheBestInOrderTiesToTheLowestId) {
  std::mt19937 random(2);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> logits(std::uniform_int_distribution<std::size_t>(1, 60)(random));
    for (float& logit : logits) logit = static_cast<float>(std::uniform_int_distribution<int>(-4, 4)(random));
    std::vector<TokenId> expected(logits.size());
    std::iota(expected.begin(), expected.end(), 0);
    std::stable_sort(expected.begin(), expected.end(), [&](TokenId a, TokenId b) {
      return logits[static_cast<std::size_t>(a)] > logits[static_cast<std::size_t>(b)];
    });
    for (const int count : {0, 1, 2, 5, 20, 100}) {
      const auto got = read_logprobs(logits, std::vector<bool>(logits.size(), true), 0, count);
      const auto size = std::min(logits.size(), static_cast<std::size_t>(count));
      ASSERT_EQ(ids_of(got),
                std::vector<TokenId>(expected.begin(), expected.begin() + static_cast<std::ptrdiff_t>(size)));
    }
  }
}

}  // namespace
}  // namespace qgen
