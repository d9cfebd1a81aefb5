#include "sample/softmax.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace qgen {
namespace {

TEST(ExpNonpositive, StaysWithinItsStatedErrorOverTheWholeRange) {
  double worst = 0;
  for (int i = 0; i <= 8'700'000; ++i) {
    const float x = static_cast<float>(i) * -1e-5f;
    const double exact = std::exp(static_cast<double>(x));
    worst = std::max(worst, std::abs(static_cast<double>(exp_nonpositive(x)) - exact) / exact);
  }
  EXPECT_LT(worst, 0x1p-22);
}

TEST(ExpNonpositive, IsOneAtZeroAndZeroFarBelow) {
  EXPECT_EQ(exp_nonpositive(0.0f), 1.0f);
  EXPECT_EQ(exp_nonpositive(-0.0f), 1.0f);
  EXPECT_GT(exp_nonpositive(-87.0f), 0.0f);
  EXPECT_EQ(exp_nonpositive(std::nextafter(-87.0f, -88.0f)), 0.0f);
  EXPECT_EQ(exp_nonpositive(-std::numeric_limits<float>::max()), 0.0f);
  EXPECT_EQ(exp_nonpositive(-std::numeric_limits<float>::infinity()), 0.0f);
}

TEST(Extremes, FindsBothEndsWhereverTheyStand) {
  for (std::size_t n = 1; n <= 100; ++n) {
    for (std::size_t at = 0; at < n; ++at) {
      std::vector<float> values(n, 0.0f);
      values[at] = 1;
      values[n - 1 - at] -= 2;
      const Extremes found = extremes(values);
      EXPECT_EQ(found.low, *std::min_element(values.begin(), values.end())) << n << ' ' << at;
      EXPECT_EQ(found.high, *std::max_element(values.begin(), values.end())) << n << ' ' << at;
    }
  }
}

}  // namespace
}  // namespace qgen
