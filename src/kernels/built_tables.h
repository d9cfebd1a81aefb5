#pragma once

#include <span>
#include <string_view>

#include "kernels/cpu_features.h"
#include "qgen/kernels/kernel_table.h"

namespace qgen::kernels {

/// One table of this build.
struct BuiltTable {
  std::string_view name;
  /// Whether a processor with these features can run it. Code of the table must not run before this said so.
  bool (*usable)(const CpuFeatures& features) noexcept;
  const KernelTable& (*table)() noexcept;
};

/// Defined by the ISA files, where the processor is of that kind.
extern const BuiltTable kScalar, kAvx2, kAvxVnni, kAvx512, kAvx512Bf16, kAmx, kNeon;

/// The tables of this build, the plainest first.
[[nodiscard]] std::span<const BuiltTable* const> built_tables() noexcept;
/// The rule behind best_kernels() for a processor with these features.
[[nodiscard]] const BuiltTable& best_table(const CpuFeatures& features) noexcept;

}  // namespace qgen::kernels
