#include "cli/options/sampling_options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <random>
#include <string_view>
#include <type_traits>

#include "cli/options/option_set.h"
#include "cli/options/values.h"
#include "qgen/base/error.h"
#include "qgen/base/text.h"

namespace qgen::cli {
namespace {

constexpr std::array<std::string_view, 3> kPresets{"creative", "factual", "code"};

void set_row(SamplingOptions& options, const SamplingOptionRow& row, double value) {
  std::visit(
      [&](auto member) {
        using Field = std::remove_reference_t<decltype(options.*member)>;
        options.*member = static_cast<Field>(value);
      },
      row.field);
}

void set_value(SamplingOptions& options, const SamplingValue& given) {
  if (const auto* integer = std::get_if<std::int64_t>(&given.value)) {
    options.*std::get<std::int64_t SamplingOptions::*>(given.row->field) = *integer;
  } else {
    options.*std::get<double SamplingOptions::*>(given.row->field) = std::get<double>(given.value);
  }
}

SamplingValue read_row(const SamplingOptionRow& row, const Given& given) {
  if (std::holds_alternative<double SamplingOptions::*>(row.field)) {
    return {&row, read_real(given, row.low, row.high)};
  }
  return {&row, read_integer(given, std::llround(row.low), std::llround(row.high))};
}

/// The model's own value for a key of generation_config.json.
std::optional<double> model_value(const GenerationConfig& model, std::string_view key) {
  if (key == "temperature") return model.temperature;
  if (key == "top_p") return model.top_p;
  if (key == "min_p") return model.min_p;
  if (key == "repetition_penalty") return model.repetition_penalty;
  if (key == "top_k" && model.top_k) return static_cast<double>(*model.top_k);
  return std::nullopt;
}

void apply_model(SamplingOptions& options, const GenerationConfig& model) {
  for (const SamplingOptionRow& row : sampling_option_rows()) {
    const std::optional<double> value = model_value(model, row.key);
    if (!value) continue;
    if (!(*value >= row.low && *value <= row.high)) {
      throw Error(ErrorKind::file, "generation_config.json: " + std::string(row.key) + " is " +
                                       shortest(*value) + ", expected " + shortest(row.low) + " to " +
                                       shortest(row.high));
    }
    set_row(options, row, *value);
  }
}

void apply_preset(SamplingOptions& options, std::string_view preset) {
  if (preset == "creative") {
    options.temperature = 0.8;
    options.top_p = 0.9;
  } else if (preset == "factual") {
    options.temperature = 0.3;
    options.top_p = 0.95;
  } else if (preset == "code") {
    options.temperature = 0.2;
    options.top_k = 40;
  }
}

/// "K" for top-k, "P" for top-p, else "N" for whole numbers and "X" for others.
std::string placeholder(const SamplingOptionRow& row) {
  const std::size_t dash = row.name.rfind('-');
  if (dash != std::string_view::npos && dash + 2 == row.name.size()) {
    return std::string(1, static_cast<char>(std::toupper(static_cast<unsigned char>(row.name.back()))));
  }
  return std::holds_alternative<std::int64_t SamplingOptions::*>(row.field) ? "N" : "X";
}

/// With a capital letter in front.
std::string sentence(std::string_view help) {
  std::string text(help);
  if (!text.empty()) text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

}  // namespace

void declare_sampling(OptionSet& set, SamplingChoice& choice) {
  for (const SamplingOptionRow& row : sampling_option_rows()) {
    std::string names = "--" + std::string(row.name);
    for (const std::string_view alias : row.aliases) names += ",--" + std::string(alias);
    set.value(names, placeholder(row), sentence(row.help),
              [&choice, &row](const Given& given) { choice.given.push_back(read_row(row, given)); });
  }
  set.flag("--greedy", "Always the most likely token, as temperature 0", choice.greedy);
  set.value("--preset", "NAME",
            "creative (0.8, top-p 0.9), factual (0.3, top-p 0.95) or code (0.2, top-k 40)",
            [&choice](const Given& given) { choice.preset = read_choice(given, kPresets); });
  set.value("-s,--seed", "N", "Same seed, same text (default: random; --stats tells)",
            [&choice](const Given& given) { choice.seed = read_unsigned(given); });
  std::string steps;
  for (const std::string_view step : sampler_step_names())
    steps += (steps.empty() ? "" : ",") + std::string(step);
  set.value("--sampler-order", "A,B,C", "Sampling steps in this order (default: " + steps + ")",
            [&choice](const Given& given) {
              choice.order.clear();
              for (Given& part : split_list(given)) {
                std::ranges::replace(part.value, '-', '_');
                choice.order.push_back(read_choice(part, sampler_step_names()));
              }
            });
}

SamplingOptions resolve_sampling(const SamplingChoice& choice, const GenerationConfig& model) {
  SamplingOptions options;
  apply_model(options, model);
  const bool chosen = !choice.given.empty() || !choice.preset.empty();
  if (model.do_sample == false && !chosen) options.temperature = 0;
  apply_preset(options, choice.preset);
  for (const SamplingValue& given : choice.given) set_value(options, given);
  if (choice.greedy) options.temperature = 0;
  options.seed = choice.seed ? *choice.seed : random_seed();
  options.order = choice.order;
  return options;
}

std::uint64_t random_seed() {
  // 32 bits: every JSON reader keeps them exactly.
  return std::random_device()();
}

}  // namespace qgen::cli
