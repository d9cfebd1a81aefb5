#pragma once

#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "qgen/sample/sampler.h"
#include "sample/candidates.h"

namespace qgen {

/// One link of the chain: narrows or reweights the candidates in place and leaves at least one.
class SamplerStep {
 public:
  virtual ~SamplerStep() = default;
  virtual void apply(Candidates& candidates, const SampleContext& context) = 0;
};

/// What the table of steps says of one.
struct StepEntry {
  std::string_view name;  ///< as in SamplingOptions::order
  bool moves_best;        ///< whether it can change which candidate has the largest logit
  std::vector<SamplingOptionRow> rows;
  /// The step set up, or nullptr where the options leave it off.
  std::unique_ptr<SamplerStep> (*make)(const SamplingOptions& options);
};

/// Every step in the default order. To add one, add it to steps.cpp alone.
std::span<const StepEntry> step_entries();

/// The steps that `options` turns on, in its order; with temperature 0 only those that can move the best
/// candidate. Throws Error{usage} for unknown or repeated names and for values out of range.
std::vector<std::unique_ptr<SamplerStep>> make_chain(const SamplingOptions& options);

}  // namespace qgen
