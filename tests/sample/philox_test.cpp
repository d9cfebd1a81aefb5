#include "sample/philox.h"

#include <gtest/gtest.h>

#include <array>
#include <set>

namespace qgen {
namespace {

using Words = std::array<std::uint32_t, 4>;

// The known-answer vectors that the authors publish with their paper's code (Random123, kat_vectors).
TEST(Philox, MatchesThePublishedKnownAnswers) {
  EXPECT_EQ(philox4x32({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox4x32({~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox4x32({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Uniform, TakesTheFirst53BitsOfTheFirstTwoWords) {
  EXPECT_EQ(uniform_at(0, 0), static_cast<double>(0x6627e8d5e169c58dull >> 11) * 0x1p-53);
}

TEST(Uniform, DiffersForEachPositionAndForBothHalvesOfTheSeed) {
  std::set<double> seen;
  for (std::uint64_t position = 0; position < 1000; ++position) seen.insert(uniform_at(0, position));
  for (int bit = 0; bit < 64; ++bit) seen.insert(uniform_at(std::uint64_t{1} << bit, 0));
  for (int bit = 32; bit < 64; ++bit) seen.insert(uniform_at(0, std::uint64_t{1} << bit));
  EXPECT_EQ(seen.size(), 1000u + 64 + 32);
  EXPECT_GE(*seen.begin(), 0.0);
  EXPECT_LT(*seen.rbegin(), 1.0);
}

}  // namespace
}  // namespace qgen
