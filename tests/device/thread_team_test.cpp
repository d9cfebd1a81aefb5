#include "device/cpu/thread_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <vector>

namespace qgen {
namespace {

class ThreadTeamTest : public testing::TestWithParam<int> {};

TEST_P(ThreadTeamTest, RunsEveryMemberOnceAndWaitsForAll) {
  ThreadTeam team(GetParam());
  std::vector<int> calls(static_cast<std::size_t>(GetParam()));
  for (int round = 1; round <= 200; ++round) {
    team.run([&](int member) { ++calls[static_cast<std::size_t>(member)]; });
    for (const int count : calls) ASSERT_EQ(count, round);
  }
}

TEST_P(ThreadTeamTest, NobodyPassesABarrierBeforeAllHaveArrived) {
  ThreadTeam team(GetParam());
  std::atomic<int> arrived{0};
  std::atomic<int> early{0};
  constexpr int kRounds = 300;
  team.run([&](int) {
    for (int round = 1; round <= kRounds; ++round) {
      ++arrived;
      team.barrier();
      if (arrived.load() < round * team.size()) ++early;
      team.barrier();
    }
  });
  EXPECT_EQ(arrived.load(), kRounds * GetParam());
  EXPECT_EQ(early.load(), 0);
}

// 16 members on a machine with fewer cores must sleep rather than spin on.
INSTANTIATE_TEST_SUITE_P(Sizes, ThreadTeamTest, testing::Values(1, 2, 3, 4, 16));

}  // namespace
}  // namespace qgen
