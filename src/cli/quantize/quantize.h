#pragma once

#include <span>
#include <string>

#include "cli/exit_code.h"
#include "cli/io/output.h"

namespace qgen::cli {

/// `qgen quantize`: a model as a GGUF file with weights of a chosen type. Throws Error.
[[nodiscard]] ExitCode run_quantize(std::span<const std::string> arguments, Output& output);

}  // namespace qgen::cli
