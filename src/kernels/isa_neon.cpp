// AArch64 with dot products of bytes: Cortex-A75, Neoverse N1 and Apple M1 on.
#include <arm_neon.h>

#include "kernels/generic/includes.h"

// The compilers spell it differently.
#if defined(__clang__)
#define QGEN_REGION_TARGET "dotprod"
#else
#define QGEN_REGION_TARGET "arch=armv8.2-a+dotprod"
#endif
#include "kernels/region_begin.h"
namespace qgen::kernels::neon {
namespace {
#include "kernels/vocabulary/neon.inl"
//
#include "kernels/generic/all.inl"

constexpr KernelTable neon_table() {
  KernelTable table = generic_table("neon");
  table.probe.int8 = probe_int8;
  return table;
}

constexpr KernelTable kTable = neon_table();
}  // namespace
}  // namespace qgen::kernels::neon
#include "kernels/region_end.h"

namespace qgen::kernels {

constinit const BuiltTable kNeon{neon::kTable.name,
                                 [](const CpuFeatures& f) noexcept { return f.asimd_dot_product; },
                                 []() noexcept -> const KernelTable& { return neon::kTable; }};

}  // namespace qgen::kernels
