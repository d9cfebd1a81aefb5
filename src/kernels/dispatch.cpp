#include <algorithm>
#include <array>
#include <string>

#include "kernels/built_tables.h"
#include "qgen/base/error.h"
#include "qgen/base/utf8.h"

namespace qgen {
namespace kernels {
namespace {

#if defined(__x86_64__)
constexpr std::array kBuilt{&kScalar, &kAvx2, &kAvxVnni, &kAvx512, &kAvx512Bf16, &kAmx};
#elif defined(__aarch64__)
constexpr std::array kBuilt{&kScalar, &kNeon};
#else
constexpr std::array kBuilt{&kScalar};
#endif

/// Tables of every kind of processor, so that a name of another kind is refused as such, not as unknown.
constexpr std::array<std::string_view, 7> kKnown{"scalar",     "avx2", "avxvnni", "avx512",
                                                 "avx512bf16", "amx",  "neon"};

std::string list_of(const auto& names) {
  std::string list;
  for (const std::string_view name : names) list.append(list.empty() ? "" : ", ").append(name);
  return list;
}

std::string available_names() {
  std::vector<std::string_view> names;
  for (const KernelTable* table : available_kernels()) names.push_back(table->name);
  return list_of(names);
}

}  // namespace

std::span<const BuiltTable* const> built_tables() noexcept {
  return kBuilt;
}

const BuiltTable& best_table(const CpuFeatures& features) noexcept {
#if defined(__x86_64__)
  if (kAmx.usable(features)) return kAmx;
  // VDPBF16PS does twice the work of float instructions on AMD's processors, half of it on Intel's.
  if (features.amd && kAvx512Bf16.usable(features)) return kAvx512Bf16;
  for (const BuiltTable* built : {&kAvx512, &kAvxVnni, &kAvx2}) {
    if (built->usable(features)) return *built;
  }
#elif defined(__aarch64__)
  if (kNeon.usable(features)) return kNeon;
#else
  static_cast<void>(features);
#endif
  return kScalar;
}

}  // namespace kernels

std::vector<const KernelTable*> available_kernels() {
  const kernels::CpuFeatures features = kernels::detect_cpu_features();
  const kernels::BuiltTable& best = kernels::best_table(features);
  std::vector<const KernelTable*> tables;
  for (const kernels::BuiltTable* built : kernels::built_tables()) {
    if (built != &best && built->usable(features)) tables.push_back(&built->table());
  }
  tables.push_back(&best.table());
  return tables;
}

std::vector<std::string_view> built_kernels() {
  std::vector<std::string_view> names;
  for (const kernels::BuiltTable* built : kernels::built_tables()) names.push_back(built->name);
  return names;
}

const KernelTable& kernels_named(std::string_view name) {
  const kernels::CpuFeatures features = kernels::detect_cpu_features();
  for (const kernels::BuiltTable* built : kernels::built_tables()) {
    if (built->name != name) continue;
    if (built->usable(features)) return built->table();
    break;
  }
  if (std::ranges::find(kernels::kKnown, name) != kernels::kKnown.end()) {
    throw Error(ErrorKind::unsupported, "this processor cannot run the kernels '" + std::string(name) +
                                            "'; it can run " + kernels::available_names());
  }
  throw Error(ErrorKind::usage, "unknown kernels '" + escape_control(name) + "'; this build has " +
                                    kernels::list_of(built_kernels()) + ", and this processor can run " +
                                    kernels::available_names());
}

const KernelTable& best_kernels() {
  return kernels::best_table(kernels::detect_cpu_features()).table();
}

std::vector<std::string_view> cpu_features() {
  return kernels::feature_names(kernels::detect_cpu_features());
}

}  // namespace qgen
