#include "device/cpu/block_sharing.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "device/cpu/thread_team.h"

namespace qgen {
namespace {

std::vector<Range> pieces_of(BlockSharing& sharing, int member, std::int64_t blocks, std::int64_t least) {
  std::vector<Range> pieces;
  sharing.run(member, blocks, least, [&](Range piece) { pieces.push_back(piece); });
  return pieces;
}

TEST(BlockSharing, GivesHalfOfWhatIsLeftButNotLessThanTheLeast) {
  BlockSharing sharing(1);
  std::int64_t at = 0;
  std::vector<std::int64_t> sizes;
  for (const Range& piece : pieces_of(sharing, 0, 100, 10)) {
    EXPECT_EQ(piece.begin, at);
    at = piece.end;
    sizes.push_back(piece.end - piece.begin);
  }
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{50, 25, 12, 10, 3}));
}

TEST(BlockSharing, WhoIsDoneTakesFromTheEndOfAnothersShare) {
  BlockSharing sharing(2);
  const std::vector<Range> pieces = pieces_of(sharing, 1, 100, 20);
  // Its own front to back, then the other's back to front.
  const std::vector<std::int64_t> begins{50, 75, 95, 25, 5, 0};
  ASSERT_EQ(pieces.size(), begins.size());
  for (std::size_t i = 0; i < begins.size(); ++i) EXPECT_EQ(pieces[i].begin, begins[i]);
  EXPECT_TRUE(pieces_of(sharing, 0, 100, 20).empty()) << "all is taken";
  // The next round begins anew.
  EXPECT_EQ(pieces_of(sharing, 0, 100, 20).front().begin, 0);
}

TEST(BlockSharing, LeavesSmallSharesAlone) {
  BlockSharing sharing(2);
  const std::vector<Range> pieces = pieces_of(sharing, 1, 7, 4);
  ASSERT_EQ(pieces.size(), 1u);
  EXPECT_EQ(pieces[0].begin, 3);
  EXPECT_EQ(pieces[0].end, 7);
  EXPECT_EQ(pieces_of(sharing, 0, 7, 4).size(), 1u);
}

class BlockSharingTest : public testing::TestWithParam<int> {};

TEST_P(BlockSharingTest, EveryBlockIsTakenOnceInEveryRound) {
  ThreadTeam team(GetParam());
  BlockSharing sharing(GetParam());
  for (const std::int64_t blocks : {0, 1, 5, 32, 1000}) {
    for (const std::int64_t least : {1, 4, 300}) {
      constexpr int kRounds = 21;
      std::vector<std::atomic<int>> taken(static_cast<std::size_t>(blocks));
      team.run([&](int member) {
        for (int round = 0; round < kRounds; ++round) {
          sharing.run(member, blocks, least, [&](Range piece) {
            for (std::int64_t i = piece.begin; i < piece.end; ++i) ++taken[static_cast<std::size_t>(i)];
          });
          team.barrier();
        }
      });
      for (const auto& times : taken) ASSERT_EQ(times.load(), kRounds) << blocks << " blocks";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, BlockSharingTest, testing::Values(1, 2, 3, 16));

}  // namespace
}  // namespace qgen
