#include <algorithm>
#include <array>
#include <iterator>
#include <string>

#include "models/qwen3/qwen3.h"
#include "qgen/base/error.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"
#include "qgen/models/architecture.h"

namespace qgen {
namespace {

/// One line a family.
std::array<const Architecture*, 1> architectures() {
  return {&qwen3_architecture()};
}

std::string supported() {
  std::vector<std::string_view> types;
  for (const Architecture* architecture : architectures()) {
    std::ranges::copy(architecture->model_types(), std::back_inserter(types));
  }
  std::ranges::sort(types);
  return join(types);
}

}  // namespace

const Architecture& find_architecture(std::string_view model_type, std::string_view source) {
  for (const Architecture* architecture : architectures()) {
    const auto types = architecture->model_types();
    if (std::ranges::find(types, model_type) != types.end()) return *architecture;
  }
  const std::string found = model_type.empty() ? "nothing" : in_quotes(model_type);
  throw Error(ErrorKind::unsupported, escape_control(source) + ": model_type: one of " + supported() +
                                          " expected (no other is supported), " + found + " found");
}

const Architecture& find_architecture(const ModelConfig& config) {
  return find_architecture(config.model_type, config.source);
}

}  // namespace qgen
