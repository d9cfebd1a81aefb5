// x86-64 with AVX-512 F, BW, DQ, VL and VNNI: Ice Lake (2019), Cascade Lake and Zen 4 on.
#include "kernels/intrinsics.h"

#include "kernels/generic/includes.h"

#define QGEN_REGION_TARGET "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"
#include "kernels/region_begin.h"
namespace qgen::kernels::avx512 {
namespace {
#include "kernels/vocabulary/avx512.inl"
// Faster than the first level on Intel's processors, which this table and amx serve, and slower on AMD's.
inline constexpr int kWeightLocality = 2;
#include "kernels/generic/all.inl"

constexpr KernelTable avx512_table() {
  KernelTable table = generic_table("avx512");
  table.probe.int8 = probe_int8;
  return table;
}

constexpr KernelTable kTable = avx512_table();
}  // namespace
}  // namespace qgen::kernels::avx512
#include "kernels/region_end.h"

namespace qgen::kernels {

constinit const BuiltTable kAvx512{avx512::kTable.name,
                                   [](const CpuFeatures& f) noexcept {
                                     return kAvx2.usable(f) && f.avx512f && f.avx512bw && f.avx512dq &&
                                            f.avx512vl && f.avx512_vnni;
                                   },
                                   []() noexcept -> const KernelTable& { return avx512::kTable; }};

}  // namespace qgen::kernels
