#include "qgen/base/text.h"

#include <gtest/gtest.h>

#include <array>
#include <limits>
#include <string>
#include <vector>

namespace qgen {
namespace {

TEST(Shortest, ReadsBackAndIsNoLongerThanNeeded) {
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(shortest(100), "100");
  EXPECT_EQ(shortest(-2.5e-300), "-2.5e-300");
  EXPECT_EQ(std::stod(shortest(std::numeric_limits<double>::max())), std::numeric_limits<double>::max());
}

TEST(ShapeText, IsAList) {
  EXPECT_EQ(shape_text({}), "[]");
  EXPECT_EQ(shape_text(std::array<std::int64_t, 3>{2, 0, 1LL << 40}), "[2, 0, 1099511627776]");
}

TEST(InQuotes, IsSafeAndShort) {
  EXPECT_EQ(in_quotes("a\x1b[2J"), "\"a\\x1B[2J\"");
  EXPECT_LT(in_quotes(std::string(1'000'000, 'x')).size(), 210U);
}

TEST(Join, PutsSeparatorsBetween) {
  EXPECT_EQ(join(std::vector<std::string>{}), "");
  EXPECT_EQ(join(std::vector<std::string>{"", "a", ""}), ", a, ");
  EXPECT_EQ(join(std::array<std::string_view, 2>{"a", "b"}, " "), "a b");
}

}  // namespace
}  // namespace qgen
