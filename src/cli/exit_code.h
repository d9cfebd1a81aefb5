#pragma once

#include "qgen/base/error.h"
#include "qgen/generate/generate.h"

namespace qgen::cli {

/// What the program's exit status tells a script.
enum class ExitCode : int {
  finished = 0,
  some_failed = 1,    ///< some lines of a batch failed
  usage = 2,          ///< the command line makes no sense
  cut_short = 3,      ///< context full, prompt too long, or -n reached with --fail-on-length
  no_answer = 4,      ///< thinking never closed
  input = 5,          ///< model or input file missing, damaged or unsupported; logits not finite
  memory = 6,         ///< not enough memory
  device = 7,         ///< a device cannot be used or failed
  output = 8,         ///< the output could not be written
  interrupted = 130,  ///< SIGINT or SIGTERM
  reader_gone = 141,  ///< the reader closed the pipe
};

[[nodiscard]] ExitCode exit_code(ErrorKind kind) noexcept;
[[nodiscard]] ExitCode exit_code(const GenerateResult& result, bool fail_on_length) noexcept;

}  // namespace qgen::cli
