#include "kernels/cpu_features.h"

#include <array>
#include <utility>

#include "kernels/built_tables.h"
#include "kernels/tile_check.h"

#if defined(__x86_64__)
#include <cpuid.h>
#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#elif defined(__aarch64__) && defined(__linux__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace qgen::kernels {

#if defined(__x86_64__)
namespace {

struct Leaf {
  std::uint32_t a = 0, b = 0, c = 0, d = 0;
};

/// Zeros where the processor has no such leaf.
Leaf read_leaf(std::uint32_t leaf, std::uint32_t part) {
  Leaf result;
  if (__get_cpuid_count(leaf, part, &result.a, &result.b, &result.c, &result.d) == 0) return {};
  return result;
}

bool bit(std::uint32_t word, int index) {
  return (word >> index & 1u) != 0;
}

/// Which register files the operating system saves. Only where CPUID says that XGETBV exists.
std::uint32_t read_xcr0() {
  std::uint32_t low = 0, high = 0;
  __asm__ volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return low;
}

/// Linux saves the tile registers only for a process that asked for it; its threads inherit that.
bool may_use_tiles() {
#if defined(__linux__)
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  static const bool may = syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
  return may;
#else
  return false;
#endif
}

/// "AuthenticAMD", four letters a register.
bool made_by_amd() {
  const Leaf zero = read_leaf(0, 0);
  return zero.b == 0x68747541 && zero.d == 0x69746E65 && zero.c == 0x444D4163;
}

}  // namespace

CpuFeatures detect_cpu_features() noexcept {
  CpuFeatures features;
  const Leaf one = read_leaf(1, 0), seven = read_leaf(7, 0), seven_more = read_leaf(7, 1);
  features.popcnt = bit(one.c, 23);
  const bool has_xgetbv = bit(one.c, 27);
  const std::uint32_t saved = has_xgetbv ? read_xcr0() : 0;
  const bool ymm = (saved & 0x6u) == 0x6u && bit(one.c, 28);
  const bool zmm = ymm && (saved & 0xE0u) == 0xE0u;
  features.fma = ymm && bit(one.c, 12);
  features.f16c = ymm && bit(one.c, 29);
  features.avx2 = ymm && bit(seven.b, 5);
  features.avx_vnni = ymm && bit(seven_more.a, 4);
  features.avx512f = zmm && bit(seven.b, 16);
  features.avx512dq = zmm && bit(seven.b, 17);
  features.avx512bw = zmm && bit(seven.b, 30);
  features.avx512vl = zmm && bit(seven.b, 31);
  features.avx512_vnni = zmm && bit(seven.c, 11);
  features.avx512_bf16 = zmm && bit(seven_more.a, 5);
  const bool tiles = (saved & 0x60000u) == 0x60000u && bit(seven.d, 24) && may_use_tiles();
  features.amx_tile = tiles;
  features.amx_bf16 = tiles && bit(seven.d, 22);
  features.amd = made_by_amd();
  if (kAmx.usable(features)) features.amx_bf16 = tiles_multiply_right();
  return features;
}
#elif defined(__aarch64__) && defined(__linux__)
CpuFeatures detect_cpu_features() noexcept {
  CpuFeatures features;
  features.asimd_dot_product = (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
  return features;
}
#else
CpuFeatures detect_cpu_features() noexcept {
  return {};
}
#endif

std::vector<std::string_view> feature_names(const CpuFeatures& features) {
  const std::array<std::pair<bool, std::string_view>, 14> all{{{features.popcnt, "popcnt"},
                                                               {features.f16c, "f16c"},
                                                               {features.fma, "fma"},
                                                               {features.avx2, "avx2"},
                                                               {features.avx_vnni, "avx_vnni"},
                                                               {features.avx512f, "avx512f"},
                                                               {features.avx512bw, "avx512bw"},
                                                               {features.avx512dq, "avx512dq"},
                                                               {features.avx512vl, "avx512vl"},
                                                               {features.avx512_vnni, "avx512_vnni"},
                                                               {features.avx512_bf16, "avx512_bf16"},
                                                               {features.amx_tile, "amx_tile"},
                                                               {features.amx_bf16, "amx_bf16"},

                                                               {features.asimd_dot_product, "asimddp"}}};
  std::vector<std::string_view> names;
  for (const auto& [present, name] : all) {
    if (present) names.push_back(name);
  }
  return names;
}

}  // namespace qgen::kernels
