// As isa_avx512.cpp, but that `few` suits AMD's caches, and AVX-512 BF16: `bulk` for bf16 and integers of
// more than 4 bits, whose X would need two products of bytes, rounds X to bf16 and multiplies pairs of
// columns by VDPBF16PS, and so does attention in such steps, which takes subnormals for zeros. Twice the
// speed of floats on AMD's Zen 4 and Zen 5, half of it on Intel's processors.
#include "kernels/intrinsics.h"

#include "kernels/generic/includes.h"

#define QGEN_REGION_TARGET "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16"
#include "kernels/region_begin.h"
namespace qgen::kernels::avx512bf16 {
namespace {
#include "kernels/vocabulary/avx512.inl"
inline constexpr int kWeightLocality = 3;
// clang-format off
#include "kernels/generic/elements.inl"
#include "kernels/vocabulary/avx512_bf16.inl"
#include "kernels/generic/panels.inl"
#include "kernels/generic/panel_few.inl"
#include "kernels/generic/panel_many.inl"
#include "kernels/generic/panel_integer.inl"
#include "kernels/generic/group_rotation.inl"
#include "kernels/generic/panel_integer_input.inl"
#include "kernels/generic/panel_integer_few.inl"
#include "kernels/generic/panel_integer_unpack.inl"
#include "kernels/generic/panel_integer_bulk.inl"
#include "kernels/generic/elementwise.inl"
#include "kernels/generic/attention.inl"
#include "kernels/generic/attention_bulk.inl"
#include "kernels/generic/probe.inl"
// clang-format on

/// Products in bf16: a unit is a pair of columns, the even one in the lower half.
struct PairUnits : RoundedPairs {
  static constexpr int kPairUnits = 1;

  static V load_unit(const std::byte* w, int) { return load(w); }

  static V load_input(const float* x, std::int64_t columns) {
    const V low = load_up_to(x, columns);
    const V high = columns > kLanes ? load_up_to(x + kLanes, columns - kLanes) : zero();
    return reinterpret_cast<V>(_mm512_cvtne2ps_pbh(high, low));
  }

  static V multiply_add(V w, V x, V y) {
    return _mm512_dpbf16_ps(y, reinterpret_cast<__m512bh>(w), reinterpret_cast<__m512bh>(x));
  }
};

double probe_bf16(std::int64_t rounds) noexcept {
  return probe_products<PairUnits>(rounds, 4.0 * kLanes);
}

/// By PackedType: as those of avx512, but for the level that weights are asked for in.
constexpr std::array<MatmulKernel, kPackedTypes> kFew{
    few_panel_kernel<F32>(),          few_panel_kernel<F16>(),          few_panel_kernel<Bf16>(),
    integer_few_kernel<Q8, false>(),  integer_few_kernel<Q4, false>(),  integer_few_kernel<Q4_1, false>(),
    integer_few_kernel<Q4K, false>(), integer_few_kernel<Q6K, false>(), integer_few_kernel<Q8, true>()};
constexpr MatmulKernel kBulkBf16 = many_panel_kernel<PairUnits>();
constexpr std::array<void (*)(const AttendArgs&) noexcept, kKvTypes> kAttendBulk{
    attend_bulk<F32, PairUnits>, attend_bulk<F16, PairUnits>, attend_bulk<Bf16, PairUnits>,
    attend_bulk<I8, PairUnits>};
constexpr MatmulKernel kBulkQ8 = integer_bulk_kernel<PairUnits, Q8>();
constexpr MatmulKernel kBulkQ6K = integer_bulk_kernel<PairUnits, Q6K>();
}  // namespace
}  // namespace qgen::kernels::avx512bf16
#include "kernels/region_end.h"

namespace qgen::kernels {
namespace {

const KernelTable& avx512bf16_table() noexcept {
  static const KernelTable table = [] {
    KernelTable changed = kAvx512.table();
    changed.name = kAvx512Bf16.name;
    for (std::size_t i = 0; i < kPackedTypes; ++i) changed.packed[i].few = avx512bf16::kFew[i];
    changed.packed[static_cast<std::size_t>(PackedType::bf16)].bulk = avx512bf16::kBulkBf16;
    changed.packed[static_cast<std::size_t>(PackedType::q8)].bulk = avx512bf16::kBulkQ8;
    changed.packed[static_cast<std::size_t>(PackedType::q6_k)].bulk = avx512bf16::kBulkQ6K;
    for (std::size_t i = 0; i < kKvTypes; ++i) changed.kv[i].attend_bulk = avx512bf16::kAttendBulk[i];
    changed.probe.bf16 = avx512bf16::probe_bf16;
    return changed;
  }();
  return table;
}

}  // namespace

constinit const BuiltTable kAvx512Bf16{
    "avx512bf16", [](const CpuFeatures& f) noexcept { return kAvx512.usable(f) && f.avx512_bf16; },
    avx512bf16_table};

}  // namespace qgen::kernels
