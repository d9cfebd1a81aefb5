#pragma once

#include <string_view>
#include <vector>

namespace qgen::kernels {

/// What the choice of a kernel table depends on: the maker, and instructions that the processor has and whose
/// registers the operating system saves.
struct CpuFeatures {
  bool avx2 = false, fma = false, f16c = false, popcnt = false, avx_vnni = false;
  bool avx512f = false, avx512bw = false, avx512dq = false, avx512vl = false;
  bool avx512_vnni = false, avx512_bf16 = false;
  bool amx_tile = false, amx_bf16 = false;
  bool amd = false;
  bool asimd_dot_product = false;
};

/// Asks the processor; on others than x86-64 and AArch64 with Linux nothing is set. Where there are tile
/// registers (AMX), it asks the operating system, once, to save them for this process; they count only if it
/// will, and amx_bf16 only if they also multiply right.
[[nodiscard]] CpuFeatures detect_cpu_features() noexcept;
/// Names, as Linux writes them, of the instruction sets that are set.
[[nodiscard]] std::vector<std::string_view> feature_names(const CpuFeatures& features);

}  // namespace qgen::kernels
