#pragma once

#include "cli/exit_code.h"
#include "cli/io/output.h"
#include "cli/run/run_options.h"

namespace qgen::cli {

/// `qgen --bench`: what a user gets, in numbers. Throws Error.
[[nodiscard]] ExitCode run_bench(const RunOptions& options, Output& output);

}  // namespace qgen::cli
