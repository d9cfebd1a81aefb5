#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "cli/io/messages.h"
#include "cli/options/model_options.h"
#include "cli/options/sampling_options.h"
#include "cli/run/model.h"
#include "cli/run/overflow.h"
#include "cli/run/prompt.h"
#include "qgen/generate/generate.h"

namespace qgen::cli {

class OptionSet;

/// What stdout carries.
enum class ReplyFormat { text, json, json_stream };

/// What makes a text end, and what happens at the end of the context.
struct LengthOptions {
  std::optional<std::int64_t> max_tokens;  ///< nothing or -1: no limit
  bool fail_on_length = false;
  std::vector<std::string> stop;
  bool ignore_end = false;
  Overflow overflow = Overflow::error;
  ContextFull context_full = ContextFull::stop;
  std::int64_t keep = 0;
};

/// What is shown of a run.
struct ShowOptions {
  bool json = false, json_stream = false;
  std::int64_t logprobs = -1;
  bool echo = false;
  bool quiet = false, verbose = false, stats = false;

  [[nodiscard]] ReplyFormat format() const noexcept {
    return json_stream ? ReplyFormat::json_stream : json ? ReplyFormat::json : ReplyFormat::text;
  }
  [[nodiscard]] Verbosity verbosity() const noexcept {
    return quiet ? Verbosity::quiet : verbose ? Verbosity::verbose : Verbosity::normal;
  }
};

/// What --bench measures; nothing in a member: the default.
struct BenchOptions {
  bool wanted = false;
  std::string first_option;  ///< the first option that only --bench has, as typed; empty: none was given
  std::optional<std::int64_t> prompt_tokens, new_tokens;
  std::vector<std::int64_t> depths;
  std::int64_t repetitions = 5;
  std::string format = "md";
  std::string compare_with;  ///< path of an earlier -o json report
  std::string plot;          ///< path of the SVG to write
};

/// Everything that `qgen` without a command understands.
struct RunOptions {
  ModelOptions model;
  PromptOptions prompt;
  bool raw = false;
  bool parse_special = false;
  SamplingChoice sampling;
  LengthOptions length;
  ShowOptions show;
  std::vector<Mode> modes;  ///< empty: the default
  BenchOptions bench;
  bool version = false;
};

/// Reads the command line; nothing where --help was asked for and `help` has been filled instead. Throws
/// Error{usage}.
[[nodiscard]] std::optional<RunOptions> read_run_options(std::span<const std::string> arguments,
                                                         std::string& help);

}  // namespace qgen::cli
