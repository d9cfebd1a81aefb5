#include "device/cpu/cpu_device.h"

#include "device/cpu/executor.h"
#include "qgen/base/error.h"
#include "qgen/base/utf8.h"
#include "qgen/device/cpu_info.h"

namespace qgen {
namespace {

KvType kv_type_of(const Plan& plan, const std::string& name) {
  if (name == "f32") return KvType::f32;
  if (name == "f16") return KvType::f16;
  if (name == "bf16") return KvType::bf16;
  if (name == "q8") return KvType::q8;
  if (name != "auto") {
    throw Error(ErrorKind::usage,
                "unknown cache type '" + escape_control(name) + "': expected auto, f32, f16, bf16 or q8");
  }
  const auto& qkv = std::get<NormQkvStage>(plan.stages[1]);
  return plan.weight(qkv.k_proj).dtype == DType::f32 ? KvType::f32 : KvType::f16;
}

/// The type that `--weights` calls by that name.
std::optional<PackedType> find_weight_type(std::string_view name) noexcept {
  if (name == "bf16") return PackedType::bf16;
  if (name == "q8") return PackedType::q8_rotated;
  if (name == "q4") return PackedType::q4;
  return std::nullopt;
}

std::optional<PackedType> weight_type_of(const std::string& name) {
  const auto type = find_weight_type(name);
  if (type || name == "auto") return type;
  throw Error(ErrorKind::usage,
              "unknown weight type '" + escape_control(name) + "': expected auto, bf16, q8 or q4");
}

const KernelTable& kernels_of(const DeviceOptions& options) {
  return options.kernels.empty() ? best_kernels() : kernels_named(options.kernels);
}

}  // namespace

double held_bits(DType dtype, std::string_view weights) noexcept {
  return packed_bits(find_weight_type(weights).value_or(packed_type_of(dtype)));
}

std::optional<std::string> CpuDevice::supports(const Plan& /*plan*/) const {
  return std::nullopt;
}

std::string CpuDevice::packing(const Plan& plan, const DeviceOptions& options) const {
  check_plan(plan);
  return PanelLayout(plan, kernels_of(options), weight_type_of(options.weights)).text();
}

std::unique_ptr<Executor> CpuDevice::compile(const Plan& plan, const DeviceOptions& options) const {
  check_plan(plan);
  const int threads = options.threads > 0 ? options.threads : default_threads(read_cpu_info());
  const CpuExecutor::Types types{weight_type_of(options.weights), kv_type_of(plan, options.kv)};
  return std::make_unique<CpuExecutor>(plan, kernels_of(options), types, threads,
                                       PackSource{options.consumed, options.packed});
}

}  // namespace qgen
