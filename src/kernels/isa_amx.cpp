// As isa_avx512.cpp, and AMX with bf16 tiles: `bulk` for bf16 and integers rounds X to bf16 and multiplies
// tiles by TDPBF16PS, which takes subnormals for zeros, and so does attention in such steps. Sapphire Rapids
// (2023) on, all of which have AVX-512 BF16 too; it rounds.
#include "kernels/intrinsics.h"

#include "kernels/generic/includes.h"
#include "kernels/tile_check.h"
#include "kernels/tile_config.h"

#define QGEN_REGION_TARGET \
  "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16,amx-tile,amx-bf16"
#include "kernels/region_begin.h"
namespace qgen::kernels::amx {
namespace {
#include "kernels/vocabulary/avx512.inl"
//
// clang-format off
#include "kernels/generic/elements.inl"
#include "kernels/vocabulary/avx512_bf16.inl"
#include "kernels/generic/panels.inl"
#include "kernels/generic/panel_integer.inl"
#include "kernels/generic/group_rotation.inl"
#include "kernels/generic/panel_integer_unpack.inl"
#include "kernels/generic/tiles.inl"
#include "kernels/generic/tile_integers.inl"
#include "kernels/generic/elementwise.inl"
#include "kernels/generic/attention.inl"
#include "kernels/generic/attention_tiles.inl"
// clang-format on
static_assert(kLanes == kTileRows);

/// The tile registers. Assembly rather than intrinsics: those of g++ 12 take tile numbers only as literals,
/// hide from the compiler that a tile reads or writes memory, and know of 8 of the 64 bytes of a TileConfig.
struct TileRegisters {
  void configure(const TileConfig& config) { __asm__ volatile("ldtilecfg %0" : : "m"(config)); }
  void release() { __asm__ volatile("tilerelease"); }
  template <int T>
  void zero() {
    __asm__ volatile("tilezero %%tmm%c0" : : "i"(T));
  }
  template <int T>
  void load(const void* from, std::int64_t stride) {
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm%c2" : : "r"(from), "r"(stride), "i"(T) : "memory");
  }
  template <int T>
  void store(void* to, std::int64_t stride) {
    __asm__ volatile("tilestored %%tmm%c2, (%0,%1,1)" : : "r"(to), "r"(stride), "i"(T) : "memory");
  }
  /// C += A B.
  template <int C, int A, int B>
  void multiply_add() {
    __asm__ volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" : : "i"(C), "i"(A), "i"(B));
  }
};

void multiply(const MatmulArgs& args) noexcept {
  TileRegisters registers;
  tile_multiply(registers, args);
}

template <class W>
void multiply_integers(const MatmulArgs& args) noexcept {
  TileRegisters registers;
  tile_multiply_integers<W, RoundedPairs>(registers, args);
}

template <class T>
void attend_bulk(const AttendArgs& args) noexcept {
  TileRegisters registers;
  tile_attend<T, RoundedPairs>(registers, args);
}

double probe_bf16(std::int64_t rounds) noexcept {
  TileRegisters registers;
  return tile_probe(registers, rounds);
}

bool are_right() noexcept {
  TileRegisters registers;
  return tiles_are_right(registers);
}

constexpr MatmulKernel kBulkBf16{2 * kTileRows, tile_input_bytes, no_scratch_bytes,
                                 tile_prepare<RoundedPairs, false>, multiply};
template <class W, bool Rotated = false>
constexpr MatmulKernel kBulkOf{2 * kTileRows, tile_input_bytes, tile_integer_scratch,
                               tile_prepare<RoundedPairs, Rotated>, multiply_integers<W>};
constexpr std::array<MatmulKernel, kIntegerTypes> kBulkIntegers{
    kBulkOf<Q8>, kBulkOf<Q4>, kBulkOf<Q4_1>, kBulkOf<Q4K>, kBulkOf<Q6K>, kBulkOf<Q8, true>};
constexpr std::array<void (*)(const AttendArgs&) noexcept, kKvTypes> kAttendBulk{
    attend_bulk<F32>, attend_bulk<F16>, attend_bulk<Bf16>, attend_bulk<I8>};
}  // namespace
}  // namespace qgen::kernels::amx
#include "kernels/region_end.h"

namespace qgen::kernels {
namespace {

const KernelTable& amx_table() noexcept {
  static const KernelTable table = [] {
    KernelTable changed = kAvx512.table();
    changed.name = kAmx.name;
    changed.packed[static_cast<std::size_t>(PackedType::bf16)].bulk = amx::kBulkBf16;
    for (std::size_t i = 0; i < kIntegerTypes; ++i) {
      changed.packed[static_cast<std::size_t>(PackedType::q8) + i].bulk = amx::kBulkIntegers[i];
    }
    for (std::size_t i = 0; i < kKvTypes; ++i) changed.kv[i].attend_bulk = amx::kAttendBulk[i];
    changed.probe.bf16 = amx::probe_bf16;
    return changed;
  }();
  return table;
}

}  // namespace

bool tiles_multiply_right() noexcept {
  static const bool right = amx::are_right();
  return right;
}

constinit const BuiltTable kAmx{"amx",
                                [](const CpuFeatures& f) noexcept {
                                  return kAvx512.usable(f) && f.avx512_bf16 && f.amx_tile && f.amx_bf16;
                                },
                                amx_table};

}  // namespace qgen::kernels
