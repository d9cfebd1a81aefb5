#include <algorithm>
#include <utility>

#include "qgen/base/error.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"
#include "sample/steps.h"

namespace qgen {
namespace {

const StepEntry& entry_called(std::string_view name) {
  std::string wanted(name);
  std::replace(wanted.begin(), wanted.end(), '-', '_');
  for (const StepEntry& entry : step_entries()) {
    if (entry.name == wanted) return entry;
  }
  throw Error(ErrorKind::usage, "unknown sampler step '" + escape_control(name) + "': the steps are " +
                                    join(sampler_step_names()));
}

std::vector<const StepEntry*> ordered_entries(const std::vector<std::string>& order) {
  std::vector<const StepEntry*> entries;
  if (order.empty()) {
    for (const StepEntry& entry : step_entries()) entries.push_back(&entry);
  }
  for (const std::string& name : order) {
    const StepEntry& entry = entry_called(name);
    if (std::find(entries.begin(), entries.end(), &entry) != entries.end()) {
      throw Error(ErrorKind::usage, "sampler step '" + std::string(entry.name) + "' is named twice");
    }
    entries.push_back(&entry);
  }
  return entries;
}

void check_values(const SamplingOptions& options) {
  for (const SamplingOptionRow& row : sampling_option_rows()) {
    const double value =
        std::visit([&](auto field) { return static_cast<double>(options.*field); }, row.field);
    if (value >= row.low && value <= row.high) continue;
    throw Error(ErrorKind::usage, "--" + std::string(row.name) + " is " + shortest(value) +
                                      ", expected a number from " + shortest(row.low) + " to " +
                                      shortest(row.high));
  }
}

}  // namespace

std::span<const SamplingOptionRow> sampling_option_rows() {
  static const std::vector<SamplingOptionRow> rows = [] {
    std::vector<SamplingOptionRow> all;
    for (const StepEntry& entry : step_entries()) all.insert(all.end(), entry.rows.begin(), entry.rows.end());
    return all;
  }();
  return rows;
}

std::span<const std::string_view> sampler_step_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const StepEntry& entry : step_entries()) all.push_back(entry.name);
    return all;
  }();
  return names;
}

std::vector<std::unique_ptr<SamplerStep>> make_chain(const SamplingOptions& options) {
  check_values(options);
  const bool greedy = options.temperature == 0;
  std::vector<std::unique_ptr<SamplerStep>> chain;
  for (const StepEntry* entry : ordered_entries(options.order)) {
    if (greedy && !entry->moves_best) continue;
    if (auto step = entry->make(options)) chain.push_back(std::move(step));
  }
  return chain;
}

}  // namespace qgen
