#include <exception>
#include <string>
#include <vector>

#include "cli/program.h"

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    return static_cast<int>(qgen::cli::run_program(arguments));
  } catch (const std::exception& problem) {
    return static_cast<int>(qgen::cli::report_failure(problem));
  }
}
