#pragma once

#include <span>
#include <string>

#include "cli/exit_code.h"
#include "cli/io/output.h"

namespace qgen::cli {

/// `qgen doctor`: what was found on this machine, what is chosen and why. Throws Error.
[[nodiscard]] ExitCode run_doctor(std::span<const std::string> arguments, Output& output);

}  // namespace qgen::cli
