#include "cli/exit_code.h"

namespace qgen::cli {

ExitCode exit_code(ErrorKind kind) noexcept {
  switch (kind) {
    case ErrorKind::usage:
      return ExitCode::usage;
    case ErrorKind::file:
    case ErrorKind::unsupported:
      return ExitCode::input;
    case ErrorKind::memory:
      return ExitCode::memory;
    case ErrorKind::device:
      return ExitCode::device;
    case ErrorKind::output:
      return ExitCode::output;
  }
  return ExitCode::input;
}

ExitCode exit_code(const GenerateResult& result, bool fail_on_length) noexcept {
  switch (result.stop) {
    case StopReason::end:
    case StopReason::stop:
      return ExitCode::finished;
    case StopReason::length:
      return fail_on_length ? ExitCode::cut_short : ExitCode::finished;
    case StopReason::context:
      return ExitCode::cut_short;
    case StopReason::thinking:
      return ExitCode::no_answer;
    case StopReason::interrupted:
      return ExitCode::interrupted;
    case StopReason::error:
      return exit_code(result.problem_kind);
  }
  return ExitCode::input;
}

}  // namespace qgen::cli
