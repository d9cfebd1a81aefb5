#pragma once

#include <string_view>
#include <vector>

#include "qgen/plan/plan.h"
#include "qgen/weights/checkpoint.h"
#include "qgen/weights/model_config.h"

namespace qgen {

/// A family of models: knows tensor names in files, knows nothing of devices.
class Architecture {
 public:
  virtual ~Architecture() = default;
  /// The model_type values of config.json that it reads.
  [[nodiscard]] virtual std::vector<std::string_view> model_types() const = 0;
  /// Binds the weights and writes the plan; checked by check_plan(). Throws Error{file} for contradictions
  /// between config and weights, Error{unsupported} for variants that are not built.
  [[nodiscard]] virtual Plan plan(const ModelConfig& config, const Checkpoint& checkpoint) const = 0;
};

/// The architecture for `model_type`; throws Error{unsupported} naming it, `source` (the file that says so,
/// for the message) and the list of those supported.
const Architecture& find_architecture(std::string_view model_type, std::string_view source);
/// The same for config.model_type.
const Architecture& find_architecture(const ModelConfig& config);

}  // namespace qgen
