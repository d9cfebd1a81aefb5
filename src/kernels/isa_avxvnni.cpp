// As isa_avx2.cpp, and AVX-VNNI: Alder Lake (2021) and Zen 5 on.
#include "kernels/intrinsics.h"

#include "kernels/generic/includes.h"

#define QGEN_REGION_TARGET "avx2,fma,f16c,avxvnni"
#include "kernels/region_begin.h"
namespace qgen::kernels::avxvnni {
namespace {
#include "kernels/vocabulary/avx2.inl"
#include "kernels/vocabulary/avxvnni_bytes.inl"
//
#include "kernels/generic/all.inl"

constexpr KernelTable avxvnni_table() {
  KernelTable table = generic_table("avxvnni");
  table.probe.int8 = probe_int8;
  return table;
}

constexpr KernelTable kTable = avxvnni_table();
}  // namespace
}  // namespace qgen::kernels::avxvnni
#include "kernels/region_end.h"

namespace qgen::kernels {

constinit const BuiltTable kAvxVnni{
    avxvnni::kTable.name, [](const CpuFeatures& f) noexcept { return kAvx2.usable(f) && f.avx_vnni; },
    []() noexcept -> const KernelTable& { return avxvnni::kTable; }};

}  // namespace qgen::kernels
