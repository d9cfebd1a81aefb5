#include "sample/border.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>

namespace qgen {
namespace {

void ones(std::span<const float>, std::span<float> mass) {
  std::fill(mass.begin(), mass.end(), 1.0f);
}

float kth_largest(std::vector<float> logits, std::size_t k) {
  std::sort(logits.begin(), logits.end(), std::greater<>());
  return logits[k - 1];
}

void expect_kth_for_every_k(const std::vector<float>& logits, const std::string& what) {
  BorderFinder finder;
  for (std::size_t k = 1; k <= logits.size(); ++k) {
    const auto goes_on = [k](double before, double) { return before < static_cast<double>(k); };
    const Border border = finder.find(logits, ones, goes_on);
    const float expected = kth_largest(logits, k);
    ASSERT_EQ(border.logit, expected) << what << ", k " << k;
    const auto larger = std::count_if(logits.begin(), logits.end(), [&](float l) { return l > expected; });
    ASSERT_EQ(border.before, static_cast<double>(larger)) << what << ", k " << k;
    ASSERT_EQ(border.total, static_cast<double>(logits.size()));
  }
}

TEST(BorderFinder, FindsTheKthLargestOfAnyShape) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 3);
  std::vector<float> shape(300);
  std::generate(shape.begin(), shape.end(), [&] { return normal(random); });
  expect_kth_for_every_k(shape, "normal");
  for (float& logit : shape) logit = std::round(logit);
  expect_kth_for_every_k(shape, "many ties");
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = std::ldexp(1.0f, -static_cast<int>(i % 149));
  expect_kth_for_every_k(shape, "each half of the one before");
  for (std::size_t i = 0; i < shape.size(); ++i) shape[i] = std::pow(-9.0f, static_cast<float>(i % 40));
  expect_kth_for_every_k(shape, "both signs, growing ninefold");
  expect_kth_for_every_k(std::vector<float>(17, -4.0f), "all equal");
}

TEST(BorderFinder, SurvivesTheEndsOfTheFloatRange) {
  using Limits = std::numeric_limits<float>;
  expect_kth_for_every_k({Limits::max(), Limits::lowest(), 0, Limits::denorm_min(), -Limits::denorm_min()},
                         "extremes");
  expect_kth_for_every_k({0, Limits::denorm_min(), 2 * Limits::denorm_min()}, "denormal");
  expect_kth_for_every_k({1, std::nextafter(1.0f, 2.0f), std::nextafter(1.0f, 0.0f)}, "neighbours");
  expect_kth_for_every_k({0.0f, -0.0f, 1.0f}, "both zeros");
}

TEST(BorderFinder, ReachesTheLargestEvenWhenNothingMayBeReached) {
  BorderFinder finder;
  const Border border = finder.find(std::vector<float>{1, 5, 3}, ones, [](double, double) { return false; });
  EXPECT_EQ(border.logit, 5);
  EXPECT_EQ(border.before, 0);
}

}  // namespace
}  // namespace qgen
