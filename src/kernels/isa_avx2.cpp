// x86-64 with AVX2, FMA and F16C: Haswell (2013) and Zen on.
#include "kernels/intrinsics.h"

#include "kernels/generic/includes.h"

#define QGEN_REGION_TARGET "avx2,fma,f16c"
#include "kernels/region_begin.h"
namespace qgen::kernels::avx2 {
namespace {
#include "kernels/vocabulary/avx2.inl"
#include "kernels/vocabulary/avx2_bytes.inl"
//
#include "kernels/generic/all.inl"

constexpr KernelTable kTable = generic_table("avx2");
}  // namespace
}  // namespace qgen::kernels::avx2
#include "kernels/region_end.h"

namespace qgen::kernels {

constinit const BuiltTable kAvx2{
    avx2::kTable.name,
    // The compiler may use POPCNT wherever it may use AVX2.
    [](const CpuFeatures& f) noexcept { return f.avx2 && f.fma && f.f16c && f.popcnt; },
    []() noexcept -> const KernelTable& { return avx2::kTable; }};

}  // namespace qgen::kernels
