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
//
#include "kernels/generic/panel_integer_unpack.inl"
//
#include "kernels/generic/panel_integer_bulk.inl"

/// Inputs of weights of more than 4 bits would need two products of bytes, each with widening: floats are
/// faster for very many tokens, and exact.
constexpr KernelTable avx2_table() {
  KernelTable table = generic_table("avx2");
  table.packed[static_cast<std::size_t>(PackedType::q8)].bulk = integer_bulk_kernel<FloatUnits<F32>, Q8>();
  table.packed[static_cast<std::size_t>(PackedType::q6_k)].bulk = integer_bulk_kernel<FloatUnits<F32>, Q6K>();
  return table;
}

constexpr KernelTable kTable = avx2_table();
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
