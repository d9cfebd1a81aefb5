#include <algorithm>
#include <atomic>
#include <cstring>

#include "device/cpu/share.h"
#include "device/cpu/thread_team.h"
#include "qgen/base/aligned_buffer.h"
#include "qgen/base/error.h"
#include "qgen/base/stopwatch.h"
#include "qgen/device/cpu_info.h"
#include "qgen/kernels/kernel_table.h"

namespace qgen {
namespace {

/// Far beyond any cache, but no burden on a small machine.
std::size_t buffer_bytes() {
  constexpr std::int64_t most = std::int64_t{768} << 20;
  const CpuInfo info = read_cpu_info();
  const std::int64_t available =
      std::min(info.memory_available, info.memory_limit.value_or(info.memory_available));
  const std::int64_t bytes = available > 0 ? std::min(most, available / 4) : most;
  return static_cast<std::size_t>(std::max<std::int64_t>(bytes, std::int64_t{16} << 20));
}

/// As large as an address limit, which the amount of free memory does not tell, leaves room for.
AlignedBuffer take_buffer() {
  constexpr std::size_t least = std::size_t{16} << 20;
  for (std::size_t bytes = buffer_bytes();; bytes /= 2) {
    try {
      return AlignedBuffer(bytes);
    } catch (const Error&) {
      if (bytes / 2 < least) throw;
    }
  }
}

/// Best of several passes in which each thread reads its own part.
double measure_read(ThreadTeam& team, const KernelTable& kernels) {
  constexpr std::int64_t page = 4096;
  AlignedBuffer buffer = take_buffer();
  const std::int64_t pages = static_cast<std::int64_t>(buffer.size()) / page;
  const auto part = [&](int member) { return share(pages, 1, member, team.size()); };
  team.run([&](int member) {
    const Range mine = part(member);
    // Pages that were never written all are the same zero page, which would be read from the cache.
    std::memset(buffer.data() + mine.begin * page, member + 1,
                static_cast<std::size_t>((mine.end - mine.begin) * page));
  });
  std::atomic<std::uint64_t> sink{0};
  double best = 0;
  const Stopwatch all;
  for (int pass = 0; pass < 8 && all.seconds() < 0.6; ++pass) {
    const Stopwatch watch;
    team.run([&](int member) {
      const Range mine = part(member);
      sink += kernels.probe.read(buffer.data() + mine.begin * page,
                                 static_cast<std::size_t>((mine.end - mine.begin) * page));
    });
    best = std::max(best, static_cast<double>(pages * page) / watch.seconds());
  }
  return best;
}

/// Best of a few runs of about 40 ms.
double measure_ops(ThreadTeam& team, double (*probe)(std::int64_t) noexcept) {
  std::int64_t rounds = 1000;
  for (;; rounds *= 4) {
    const Stopwatch watch;
    probe(rounds);
    if (watch.seconds() > 0.01) break;
  }
  rounds *= 2;
  double best = 0;
  for (int pass = 0; pass < 4; ++pass) {
    std::vector<double> done(static_cast<std::size_t>(team.size()));
    const Stopwatch watch;
    team.run([&](int member) { done[static_cast<std::size_t>(member)] = probe(rounds); });
    const double seconds = watch.seconds();
    double total = 0;
    for (const double ops : done) total += ops;
    best = std::max(best, total / seconds);
  }
  return best;
}

const KernelTable& table_of(std::string_view kernels) {
  return kernels.empty() ? best_kernels() : kernels_named(kernels);
}

}  // namespace

CpuLimits measure_cpu(int threads, std::string_view kernels) {
  CpuLimits limits = measure_arithmetic(threads, kernels);
  ThreadTeam team(threads);
  limits.read_bytes_per_second = measure_read(team, table_of(kernels));
  return limits;
}

CpuLimits measure_arithmetic(int threads, std::string_view kernel_name) {
  const KernelTable& kernels = table_of(kernel_name);
  ThreadTeam team(threads);
  CpuLimits limits;
  limits.f32_ops_per_second = measure_ops(team, kernels.probe.f32);
  if (kernels.probe.bf16 != nullptr) limits.bf16_ops_per_second = measure_ops(team, kernels.probe.bf16);
  if (kernels.probe.int8 != nullptr) limits.int8_ops_per_second = measure_ops(team, kernels.probe.int8);
  return limits;
}

}  // namespace qgen
