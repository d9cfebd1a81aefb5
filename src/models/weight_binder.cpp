#include "models/weight_binder.h"

#include <utility>

#include "qgen/base/error.h"

namespace qgen {

WeightBinder::WeightBinder(const Checkpoint& checkpoint, Plan& plan, std::string prefix)
    : checkpoint_(checkpoint), plan_(plan), prefix_(std::move(prefix)) {}

WeightId WeightBinder::operator()(const std::string& name, std::initializer_list<std::int64_t> shape) {
  plan_.weights.push_back({prefix_ + name, checkpoint_.require(prefix_ + name, shape)});
  return static_cast<WeightId>(plan_.weights.size()) - 1;
}

WeightId WeightBinder::where(bool has, const std::string& name, std::initializer_list<std::int64_t> shape) {
  if (has) return (*this)(name, shape);
  refuse(name);
  return kNoWeight;
}

void WeightBinder::refuse(const std::string& name) const {
  const StoredTensor* tensor = checkpoint_.find(prefix_ + name);
  if (tensor == nullptr) return;
  throw Error(ErrorKind::file, tensor->file + ": tensor " + prefix_ + name +
                                   ": the model that config.json describes has none");
}

}  // namespace qgen
