#include "qgen/device/cpu_info.h"

#include <gtest/gtest.h>
#include <sched.h>

namespace qgen {
namespace {

CpuInfo machine(int logical, int affinity, int physical, std::optional<double> quota) {
  CpuInfo info;
  info.logical = logical;
  info.affinity = affinity;
  info.physical = physical;
  info.quota = quota;
  return info;
}

TEST(DefaultThreads, IsTheLeastOfAffinityQuotaAndCores) {
  EXPECT_EQ(default_threads(machine(8, 8, 8, std::nullopt)), 8);
  EXPECT_EQ(default_threads(machine(16, 16, 8, std::nullopt)), 8) << "hyper-threads are no cores";
  EXPECT_EQ(default_threads(machine(8, 4, 4, std::nullopt)), 4);
  EXPECT_EQ(default_threads(machine(8, 8, 8, 4.0)), 4);
  EXPECT_EQ(default_threads(machine(8, 8, 8, 2.9)), 2) << "part of a processor is no processor";
  EXPECT_EQ(default_threads(machine(8, 8, 8, 0.5)), 1) << "never none";
}

TEST(ReadCpuInfo, FollowsTheAffinityOfThisProcess) {
  cpu_set_t before;
  ASSERT_EQ(::sched_getaffinity(0, sizeof before, &before), 0);
  int first = 0;
  while (!CPU_ISSET(static_cast<std::size_t>(first), &before)) ++first;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(static_cast<std::size_t>(first), &one);
  ASSERT_EQ(::sched_setaffinity(0, sizeof one, &one), 0);
  const CpuInfo info = read_cpu_info();
  ASSERT_EQ(::sched_setaffinity(0, sizeof before, &before), 0);
  EXPECT_EQ(info.affinity, 1);
  EXPECT_EQ(info.physical, 1);
  EXPECT_EQ(default_threads(info), 1);
  EXPECT_EQ(read_cpu_info().affinity, CPU_COUNT(&before));
}

TEST(ReadCpuInfo, FindsProcessorsAndMemory) {
  const CpuInfo info = read_cpu_info();
  EXPECT_GE(info.logical, info.affinity);
  EXPECT_GE(info.affinity, info.physical);
  EXPECT_GE(info.physical, 1);
  EXPECT_GT(info.memory_total, std::int64_t{64} << 20);
  EXPECT_GT(info.memory_available, 0);
  EXPECT_LE(info.memory_available, info.memory_total);
}

TEST(MeasureCpu, GivesPositiveLimits) {
  const CpuLimits limits = measure_cpu(1, "scalar");
  EXPECT_GT(limits.read_bytes_per_second, 1e8);
  EXPECT_GT(limits.f32_ops_per_second, 1e7);
  EXPECT_FALSE(limits.bf16_ops_per_second.has_value());
}

}  // namespace
}  // namespace qgen
