#pragma once

#include "cli/exit_code.h"
#include "cli/io/output.h"
#include "cli/run/run_options.h"

namespace qgen::cli {

/// One prompt, one reply. Throws Error.
[[nodiscard]] ExitCode run_prompt(const RunOptions& options, Output& output);

}  // namespace qgen::cli
