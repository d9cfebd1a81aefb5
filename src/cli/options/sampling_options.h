#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "qgen/sample/sampler.h"
#include "qgen/weights/model_config.h"

namespace qgen::cli {

class OptionSet;

/// A sampling number that the user gave.
struct SamplingValue {
  const SamplingOptionRow* row = nullptr;
  std::variant<double, std::int64_t> value;
};

/// What the command line says about sampling; the model's own defaults come in later.
struct SamplingChoice {
  std::vector<SamplingValue> given;  ///< in the order given: the last of a row counts
  std::string preset;                ///< empty, or creative, factual, code
  bool greedy = false;
  std::optional<std::uint64_t> seed;
  std::vector<std::string> order;
};

void declare_sampling(OptionSet& set, SamplingChoice& choice);

/// Each key by itself: the value given, else the preset's, else the model's, else qgen's default. A model
/// that says do_sample: false is greedy unless a sampling value or preset is given. Throws Error{file} for a
/// value of the model that is out of range.
[[nodiscard]] SamplingOptions resolve_sampling(const SamplingChoice& choice, const GenerationConfig& model);

/// A seed that nobody can foresee.
[[nodiscard]] std::uint64_t random_seed();

}  // namespace qgen::cli
