#pragma once

#include <exception>
#include <span>
#include <string>

#include "cli/exit_code.h"

namespace qgen::cli {

/// Runs the command that `arguments` (without the program's name) ask for. Throws Error.
[[nodiscard]] ExitCode run_program(std::span<const std::string> arguments);

/// Says on stderr, in one line, what went wrong, and gives the code to exit with.
[[nodiscard]] ExitCode report_failure(const std::exception& problem) noexcept;

}  // namespace qgen::cli
