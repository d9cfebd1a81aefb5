// Frequencies of choices against exact probabilities. Seeds are fixed, so a test gives the same verdict every
// time.

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "qgen/sample/sampler.h"

namespace qgen {
namespace {

constexpr std::size_t kDraws = 40000;

/// What chi-square with `freedom` degrees of freedom exceeds once in a million (Wilson and Hilferty 1931).
double chi_square_limit(double freedom) {
  const double z = 4.753;  // the normal quantile of 1 - 1e-6
  const double part = 2 / (9 * freedom);
  return freedom * std::pow(1 - part + z * std::sqrt(part), 3);
}

double chi_square(const std::map<TokenId, double>& probabilities, const std::map<TokenId, double>& counts) {
  double sum = 0;
  for (const auto& [id, p] : probabilities) {
    const double expected = p * kDraws;
    const double seen = counts.contains(id) ? counts.at(id) : 0;
    sum += (seen - expected) * (seen - expected) / expected;
  }
  return sum;
}

SamplingOptions neutral() {
  SamplingOptions options;
  options.temperature = 1;
  options.top_p = 1;
  return options;
}

/// Probabilities proportional to exp(logit / temperature) over `kept`, in double precision.
std::map<TokenId, double> exact(const std::vector<float>& logits, const std::vector<TokenId>& kept,
                                double temperature) {
  std::map<TokenId, double> out;
  double total = 0;
  for (const TokenId id : kept) {
    total += out[id] = std::exp(static_cast<double>(logits[static_cast<std::size_t>(id)]) / temperature);
  }
  for (auto& [id, p] : out) p /= total;
  return out;
}

std::map<TokenId, double> counts_over_positions(const SamplingOptions& options,
                                                const std::vector<float>& logits) {
  Sampler sampler(options);
  const std::vector<TokenId> reply(kDraws, 0);
  std::map<TokenId, double> counts;
  for (std::size_t n = 0; n < kDraws; ++n) {
    ++counts[sampler.choose(logits, {{}, std::span(reply).first(n)}).id];
  }
  return counts;
}

void expect_distribution(const SamplingOptions& options, const std::vector<float>& logits,
                         const std::map<TokenId, double>& probabilities) {
  const auto counts = counts_over_positions(options, logits);
  for (const auto& [id, count] : counts) EXPECT_TRUE(probabilities.contains(id)) << "chose " << id;
  EXPECT_LT(chi_square(probabilities, counts),
            chi_square_limit(static_cast<double>(probabilities.size()) - 1));
}

const std::vector<float> kLogits{1.0f, -0.5f, 2.0f, 0.3f, 0.0f, 1.7f, -1.2f, 0.9f};

TEST(Distribution, IsTheSoftmaxOfTheLogits) {
  expect_distribution(neutral(), kLogits, exact(kLogits, {0, 1, 2, 3, 4, 5, 6, 7}, 1));
}

TEST(Distribution, FollowsTheTemperature) {
  for (const double temperature : {0.5, 0.8, 3.0}) {
    SamplingOptions options = neutral();
    options.temperature = temperature;
    options.seed = 7;
    expect_distribution(options, kLogits, exact(kLogits, {0, 1, 2, 3, 4, 5, 6, 7}, temperature));
  }
}

TEST(Distribution, IsRenormalisedOverWhatTheFiltersKeep) {
  SamplingOptions options = neutral();
  options.top_k = 3;
  expect_distribution(options, kLogits, exact(kLogits, {0, 2, 5}, 1));
  options = neutral();
  options.top_p = 0.5;  // .339 (id 2) + .251 (id 5) is the first sum of at least a half
  expect_distribution(options, kLogits, exact(kLogits, {2, 5}, 1));
  options = neutral();
  options.min_p = 0.3;  // log 0.3 = -1.204: logits of at least 0.796
  expect_distribution(options, kLogits, exact(kLogits, {0, 2, 5, 7}, 1));
}

TEST(Distribution, IsRightForManyCandidates) {
  std::vector<float> logits;
  std::vector<TokenId> all;
  for (int i = 0; i < 1000; ++i) {
    logits.push_back(static_cast<float>(i % 10) * 0.2f);
    all.push_back(i);
  }
  expect_distribution(neutral(), logits, exact(logits, all, 1));
}

TEST(Distribution, OverSeedsAtOnePositionIsTheSame) {
  std::map<TokenId, double> counts;
  for (std::uint64_t seed = 0; seed < kDraws; ++seed) {
    SamplingOptions options = neutral();
    options.seed = seed;
    ++counts[Sampler(options).choose(kLogits, {}).id];
  }
  const auto probabilities = exact(kLogits, {0, 1, 2, 3, 4, 5, 6, 7}, 1);
  EXPECT_LT(chi_square(probabilities, counts), chi_square_limit(7));
}

TEST(Distribution, NeighbouringDrawsAreIndependent) {
  Sampler sampler(neutral());
  const std::vector<float> logits{0, 0, 0, 0};
  const std::vector<TokenId> reply(2 * kDraws, 0);
  const auto draw = [&](std::size_t n) { return sampler.choose(logits, {{}, std::span(reply).first(n)}).id; };
  std::map<TokenId, double> pairs, expected;
  for (std::size_t n = 0; n < kDraws; ++n) ++pairs[draw(2 * n) * 4 + draw(2 * n + 1)];
  for (TokenId pair = 0; pair < 16; ++pair) expected[pair] = 1.0 / 16;
  EXPECT_LT(chi_square(expected, pairs), chi_square_limit(15));
}

}  // namespace
}  // namespace qgen
