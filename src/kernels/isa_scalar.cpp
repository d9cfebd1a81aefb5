// Any processor that the compiler builds for: no region, no intrinsics.
#include "kernels/generic/includes.h"

namespace qgen::kernels::scalar {
namespace {
#include "kernels/vocabulary/portable.inl"
//
#include "kernels/generic/all.inl"

constexpr KernelTable kTable = generic_table("scalar");
}  // namespace
}  // namespace qgen::kernels::scalar

namespace qgen::kernels {

constinit const BuiltTable kScalar{scalar::kTable.name, [](const CpuFeatures&) noexcept { return true; },
                                   []() noexcept -> const KernelTable& { return scalar::kTable; }};

}  // namespace qgen::kernels
