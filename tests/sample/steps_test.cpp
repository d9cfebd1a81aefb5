// Top-k and top-p against sorting the whole vocabulary, whose shapes make them look near the best or
// everywhere.
#include "sample/steps.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <string>

namespace qgen {
namespace {

struct Shape {
  std::string name;
  std::vector<float> logits;
};

std::vector<Shape> shapes() {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  std::vector<Shape> all{{"flat", {}}, {"peaked", {}}, {"ties", {}}, {"far below", {}}};
  for (Shape& shape : all) {
    for (int i = 0; i < 10'007; ++i) shape.logits.push_back(normal(random));
  }
  for (const std::size_t id : {17u, 64u, 9'999u}) all[1].logits[id] = 14.0f + static_cast<float>(id % 5);
  for (float& logit : all[2].logits) logit = std::round(2 * logit);
  // The best alone is near; the rest weighs as much together.
  for (float& logit : all[3].logits) logit *= 0.1f;
  all[3].logits[5'000] = 12.5f;
  return all;
}

/// Ids by falling logit, of equal ones the lowest first.
std::vector<TokenId> sorted_ids(const std::vector<float>& logits) {
  std::vector<TokenId> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::ranges::stable_sort(ids, std::ranges::greater(),
                           [&](TokenId id) { return logits[static_cast<std::size_t>(id)]; });
  return ids;
}

std::vector<TokenId> ascending(std::vector<TokenId> ids) {
  std::ranges::sort(ids);
  return ids;
}

/// What the only step that these options turn on keeps.
std::vector<TokenId> kept(const std::vector<float>& logits, SamplingOptions options) {
  options.temperature = 1;
  std::vector<TokenId> all(logits.size());
  std::iota(all.begin(), all.end(), 0);
  Candidates candidates;
  std::ranges::copy(logits, candidates.begin(all).begin());
  candidates.find_top();
  const auto chain = make_chain(options);
  EXPECT_EQ(chain.size(), 1u);
  chain[0]->apply(candidates, {});
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    EXPECT_EQ(candidates.logits()[i], logits[static_cast<std::size_t>(candidates.ids()[i])]);
  }
  return {candidates.ids().begin(), candidates.ids().end()};
}

TEST(SamplerSteps, TopKKeepsWhatSortingPutsFirstAndItsEquals) {
  for (const Shape& shape : shapes()) {
    const std::vector<float>& logits = shape.logits;
    const std::vector<TokenId> sorted = sorted_ids(logits);
    for (const std::size_t k : {1u, 2u, 20u, 156u, 157u, 158u, 1'000u, 10'006u}) {
      SCOPED_TRACE(shape.name + ", k " + std::to_string(k));
      const float last = logits[static_cast<std::size_t>(sorted[k - 1])];
      const auto end = std::ranges::find_if(
          sorted, [&](TokenId id) { return logits[static_cast<std::size_t>(id)] < last; });
      SamplingOptions options;
      options.top_k = static_cast<std::int64_t>(k);
      options.top_p = 1;
      EXPECT_EQ(kept(logits, options), ascending({sorted.begin(), end}));
    }
  }
}

TEST(SamplerSteps, TopPKeepsTheFewestThatWeighEnough) {
  for (const Shape& shape : shapes()) {
    const std::vector<float>& logits = shape.logits;
    const std::vector<TokenId> sorted = sorted_ids(logits);
    const double top = static_cast<double>(logits[static_cast<std::size_t>(sorted[0])]);
    std::vector<double> before{0};
    for (const TokenId id : sorted) {
      before.push_back(before.back() +
                       std::exp(static_cast<double>(logits[static_cast<std::size_t>(id)]) - top));
    }
    for (const double p : {0.0, 0.1, 0.5, 0.8, 0.95, 0.999}) {
      SCOPED_TRACE(shape.name + ", p " + std::to_string(p));
      SamplingOptions options;
      options.top_p = p;
      const std::vector<TokenId> got = kept(logits, options);
      std::size_t expected = 1;
      while (expected < sorted.size() && before[expected] < p * before.back()) ++expected;
      // Weights err by 2^-22 of themselves, so the sum may end a few tokens away where many weigh next to
      // nothing.
      const double short_of = p * before.back() - before[got.size() - 1];
      EXPECT_GT(short_of, p == 0 ? -1e-6 : -1e-5 * before.back());
      EXPECT_GE(before[got.size()], (p - 1e-5) * before.back());
      EXPECT_NEAR(static_cast<double>(got.size()), static_cast<double>(expected),
                  0.002 * static_cast<double>(expected));
      EXPECT_EQ(got, ascending({sorted.begin(), sorted.begin() + static_cast<std::ptrdiff_t>(got.size())}));
    }
  }
}

}  // namespace
}  // namespace qgen
