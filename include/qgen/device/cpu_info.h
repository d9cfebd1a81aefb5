#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace qgen {

/// What the system says about processors, seen from this process.
struct CpuInfo {
  std::string model;                         ///< as the processor names itself; empty where unknown
  int logical = 1;                           ///< online processors of the machine
  int affinity = 1;                          ///< processors that this process may run on
  int physical = 1;                          ///< distinct cores among them
  std::optional<double> quota;               ///< processors' worth of time that the container may use
  std::int64_t memory_total = 0;             ///< bytes
  std::int64_t memory_available = 0;         ///< bytes
  std::optional<std::int64_t> memory_limit;  ///< bytes, of the container
};
[[nodiscard]] CpuInfo read_cpu_info();
/// min(affinity, floor(quota), physical cores), at least 1.
[[nodiscard]] int default_threads(const CpuInfo& info);

/// Measured limits of the machine with `threads` threads and the kernel table `kernels` (empty: the best).
struct CpuLimits {
  double read_bytes_per_second = 0;
  double f32_ops_per_second = 0;
  std::optional<double> bf16_ops_per_second, int8_ops_per_second;
};
/// Takes under two seconds.
[[nodiscard]] CpuLimits measure_cpu(int threads, std::string_view kernels);
/// The arithmetic alone; takes no memory and about half a second.
[[nodiscard]] CpuLimits measure_arithmetic(int threads, std::string_view kernels);

}  // namespace qgen
