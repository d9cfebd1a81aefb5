#pragma once

#include <span>
#include <string>

#include "cli/exit_code.h"
#include "cli/io/output.h"

namespace qgen::cli {

/// `qgen tokenize`: text to ids and back, with nothing but the tokenizer of a model. Throws Error.
[[nodiscard]] ExitCode run_tokenize(std::span<const std::string> arguments, Output& output);

}  // namespace qgen::cli
