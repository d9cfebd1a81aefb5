#include <array>
#include <string>

#include "device/cpu/cpu_device.h"
#include "device/reference/reference_device.h"
#include "qgen/base/error.h"
#include "qgen/base/utf8.h"

namespace qgen {
namespace {

/// Devices that exist in some build. One that is not in this build is refused as such, not as unknown.
constexpr std::string_view kOtherDevices = "cuda";

std::string names() {
  std::string list = "auto";
  for (const Device* device : devices()) list += ", " + std::string(device->name());
  return list;
}

const Device& first_that_supports(const Plan& plan) {
  std::string reasons;
  for (const Device* device : devices()) {
    if (device->name() == "reference") continue;
    const auto reason = device->supports(plan);
    if (!reason) return *device;
    reasons += "; " + std::string(device->name()) + ": " + *reason;
  }
  throw Error(ErrorKind::device, "no device can run this model" + reasons);
}

}  // namespace

std::span<const Device* const> devices() {
  static const CpuDevice cpu;
  static const ReferenceDevice reference;
  static const std::array<const Device*, 2> all{&cpu, &reference};
  return all;
}

const Device& find_device(std::string_view name, const Plan& plan) {
  if (name == "auto") return first_that_supports(plan);
  for (const Device* device : devices()) {
    if (device->name() != name) continue;
    if (const auto reason = device->supports(plan)) {
      throw Error(ErrorKind::device, "device " + std::string(name) + " cannot run this model: " + *reason);
    }
    return *device;
  }
  if (name == kOtherDevices) {
    throw Error(ErrorKind::device, "device cuda is not in this build; there are " + names());
  }
  throw Error(ErrorKind::usage, "unknown device '" + escape_control(name) + "'; there are " + names());
}

}  // namespace qgen
