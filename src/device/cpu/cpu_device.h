#pragma once

#include "qgen/device/device.h"

namespace qgen {

/// Threads and SIMD kernels on the processor at hand.
class CpuDevice final : public Device {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "cpu"; }
  [[nodiscard]] std::optional<std::string> supports(const Plan& plan) const override;
  [[nodiscard]] std::string packing(const Plan& plan, const DeviceOptions& options) const override;
  [[nodiscard]] std::unique_ptr<Executor> compile(const Plan& plan,
                                                  const DeviceOptions& options) const override;
};

}  // namespace qgen
