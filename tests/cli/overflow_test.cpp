#include "cli/run/overflow.h"

#include <gmock/gmock.h>

#include <numeric>

namespace qgen::cli {
namespace {

using ::testing::ElementsAre;

std::vector<TokenId> numbered(int count) {
  std::vector<TokenId> ids(static_cast<std::size_t>(count));
  std::iota(ids.begin(), ids.end(), 0);
  return ids;
}

TEST(Overflow, HeadDropsTheBeginning) {
  std::vector<TokenId> prompt = numbered(12);
  const std::string said = drop_overflow(prompt, Overflow::head, {8, 2, std::nullopt});
  EXPECT_THAT(prompt, ElementsAre(6, 7, 8, 9, 10, 11));
  EXPECT_EQ(said, "dropped 6 of 12 prompt tokens from the beginning, the context holds 8");
}

TEST(Overflow, TailDropsTheEnd) {
  std::vector<TokenId> prompt = numbered(12);
  const std::string said = drop_overflow(prompt, Overflow::tail, {8, 2, std::nullopt});
  EXPECT_THAT(prompt, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_THAT(said, ::testing::HasSubstr("from the end"));
}

TEST(Overflow, MiddleKeepsBothEnds) {
  std::vector<TokenId> prompt = numbered(12);
  const std::string said = drop_overflow(prompt, Overflow::middle, {8, 2, std::nullopt});
  EXPECT_THAT(prompt, ElementsAre(0, 1, 2, 9, 10, 11));
  EXPECT_THAT(said, ::testing::HasSubstr("from the middle"));
}

TEST(Overflow, StartTokenStays) {
  std::vector<TokenId> prompt = numbered(12);
  drop_overflow(prompt, Overflow::head, {8, 2, TokenId{0}});
  EXPECT_THAT(prompt, ElementsAre(0, 7, 8, 9, 10, 11));
}

TEST(Overflow, RoomForTheReplyIsWhatWasAskedForUpToHalf) {
  std::vector<TokenId> prompt = numbered(100);
  drop_overflow(prompt, Overflow::head, {64, 1000, std::nullopt});
  EXPECT_EQ(prompt.size(), 32U);
  prompt = numbered(100);
  drop_overflow(prompt, Overflow::head, {64, -1, std::nullopt});
  EXPECT_EQ(prompt.size(), 48U);
  prompt = numbered(100);
  drop_overflow(prompt, Overflow::head, {64, 0, std::nullopt});
  EXPECT_EQ(prompt.size(), 63U);
}

TEST(Overflow, TinyContextsKeepOneToken) {
  for (const Overflow overflow : {Overflow::head, Overflow::tail, Overflow::middle}) {
    std::vector<TokenId> prompt = numbered(5);
    drop_overflow(prompt, overflow, {2, -1, TokenId{0}});
    EXPECT_EQ(prompt.size(), 1U);
  }
}

}  // namespace
}  // namespace qgen::cli
