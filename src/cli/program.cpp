#include "cli/program.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <new>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "cli/bench/bench.h"
#include "cli/doctor.h"
#include "cli/io/descriptors.h"
#include "cli/io/messages.h"
#include "cli/io/output.h"
#include "cli/io/signals.h"
#include "cli/quantize/quantize.h"
#include "cli/run/run.h"
#include "cli/run/run_options.h"
#include "cli/tokenize.h"
#include "cli/version.h"
#include "qgen/base/error.h"

namespace qgen::cli {
namespace {

/// Words that are going to be commands: a prompt of that text has to be given with -p.
constexpr std::array<std::string_view, 3> kLaterCommands{"chat", "perplexity", "template"};

ExitCode print(Output& output, std::string_view text) {
  output.write(text);
  return output.finish();
}

ExitCode run(std::span<const std::string> arguments, Output& output) {
  std::string help;
  const std::optional<RunOptions> options = read_run_options(arguments, help);
  if (!options) return print(output, help);
  if (options->version) return print(output, version_text() + "\n");
  return options->bench.wanted ? run_bench(*options, output) : run_prompt(*options, output);
}

/// A container that is asked for more than it could ever hold says so in its own way.
bool is_out_of_memory(const std::exception& problem) {
  return dynamic_cast<const std::bad_alloc*>(&problem) != nullptr ||
         dynamic_cast<const std::length_error*>(&problem) != nullptr;
}

}  // namespace

ExitCode run_program(std::span<const std::string> arguments) {
  occupy_standard_streams();
  handle_signals(OnInterrupt::exit_at_once);
  Output output(STDOUT_FILENO);
  const std::string_view command = arguments.empty() ? std::string_view() : arguments.front();
  if (command == "tokenize") return run_tokenize(arguments.subspan(1), output);
  if (command == "quantize") return run_quantize(arguments.subspan(1), output);
  if (command == "doctor") return run_doctor(arguments.subspan(1), output);
  if (command == "bench") {
    std::vector<std::string> with_flag{"--bench"};
    with_flag.insert(with_flag.end(), arguments.begin() + 1, arguments.end());
    return run(with_flag, output);
  }
  if (std::ranges::find(kLaterCommands, command) != kLaterCommands.end()) {
    throw Error(ErrorKind::usage, "the command " + std::string(command) + " is not available yet (-p " +
                                      std::string(command) + " is a prompt)");
  }
  return run(arguments, output);
}

ExitCode report_failure(const std::exception& problem) noexcept {
  try {
    const Messages messages(Verbosity::quiet);
    if (is_out_of_memory(problem)) {
      messages.error("not enough memory; a smaller context (-c) or model needs less");
      return ExitCode::memory;
    }
    const bool expected = dynamic_cast<const Error*>(&problem) != nullptr;
    messages.error((expected ? "" : "unexpected failure, please report it: ") + std::string(problem.what()));
  } catch (const std::exception&) {
    // Nothing is left to say it with; the exit code still tells.
  }
  const auto* error = dynamic_cast<const Error*>(&problem);
  return error == nullptr ? ExitCode::input : exit_code(error->kind());
}

}  // namespace qgen::cli
