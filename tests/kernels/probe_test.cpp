#include "kernels/kernel_test.h"

namespace qgen::test {
namespace {

using ProbeTest = KernelTest;
QGEN_FOR_ALL_TABLES(ProbeTest);

TEST_P(ProbeTest, ReadsExactlyTheGivenBytes) {
  for (const std::size_t pages : {0u, 1u, 3u}) {
    for (const auto edge : {GuardedBytes::Edge::upper, GuardedBytes::Edge::lower}) {
      const GuardedBytes memory(pages * 4096, edge);
      static_cast<void>(table().probe.read(memory.data(), pages * 4096));
    }
  }
}

TEST_P(ProbeTest, CountsTheOperationsOfEveryInstructionThatTheTableHas) {
  ASSERT_NE(table().probe.f32, nullptr);
  EXPECT_EQ(table().probe.bf16 != nullptr, table().name == "avx512bf16" || table().name == "amx");
  EXPECT_EQ(table().probe.int8 != nullptr, table().name != "scalar" && table().name != "avx2");
  for (const auto probe : {table().probe.f32, table().probe.bf16, table().probe.int8}) {
    if (probe == nullptr) continue;
    EXPECT_EQ(probe(0), 0);
    EXPECT_GT(probe(1), 0);
    EXPECT_EQ(probe(10), 10 * probe(1));
  }
}

}  // namespace
}  // namespace qgen::test
