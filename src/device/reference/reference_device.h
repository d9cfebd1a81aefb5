#pragma once

#include "qgen/device/device.h"

namespace qgen {

/// Slow, obvious arithmetic in double precision: what every other device is compared with.
class ReferenceDevice final : public Device {
 public:
  [[nodiscard]] std::string_view name() const noexcept override { return "reference"; }
  [[nodiscard]] std::optional<std::string> supports(const Plan& plan) const override;
  [[nodiscard]] std::unique_ptr<Executor> compile(const Plan& plan,
                                                  const DeviceOptions& options) const override;
};

}  // namespace qgen
