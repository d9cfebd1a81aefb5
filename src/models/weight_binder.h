#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>

#include "qgen/plan/plan.h"
#include "qgen/weights/checkpoint.h"

namespace qgen {

/// Puts weights of a checkpoint into a plan. Throws Error{file} as Checkpoint::require does.
class WeightBinder {
 public:
  /// Names given to the binder are completed by `prefix`. `checkpoint` and `plan` must outlive it.
  WeightBinder(const Checkpoint& checkpoint, Plan& plan, std::string prefix);

  /// The weight `name`, which must have this shape.
  WeightId operator()(const std::string& name, std::initializer_list<std::int64_t> shape);
  /// The same if the config says that the model `has` it, else kNoWeight; a file that says otherwise is
  /// refused: what it would compute is not what its config describes.
  WeightId where(bool has, const std::string& name, std::initializer_list<std::int64_t> shape);
  /// Refuses a file that has the tensor `name`.
  void refuse(const std::string& name) const;

 private:
  const Checkpoint& checkpoint_;
  Plan& plan_;
  std::string prefix_;
};

}  // namespace qgen
