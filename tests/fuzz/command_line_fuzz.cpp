// A command line, its arguments with a NUL between each; the same bytes also as a text with escapes.

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cli/run/prompt.h"
#include "cli/run/run_options.h"
#include "parts.h"
#include "qgen/base/error.h"

namespace {

using qgen::fuzz::check;

void read_command_line(std::string_view input) {
  std::vector<std::string> arguments;
  for (std::size_t begin = 0; begin <= input.size();) {
    const std::size_t end = std::min(input.find('\0', begin), input.size());
    arguments.emplace_back(input.substr(begin, end - begin));
    begin = end + 1;
  }
  try {
    std::string help;
    check(qgen::cli::read_run_options(arguments, help).has_value() == help.empty());
  } catch (const qgen::Error& error) {
    check(error.kind() == qgen::ErrorKind::usage);
    qgen::fuzz::check_shown(error.what());
  }
}

void read_escapes(std::string_view text) {
  const std::string plain = qgen::cli::unescape(text);
  check(plain.size() <= text.size());
  if (text.find('\\') == std::string_view::npos) check(plain == text);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  read_command_line(input);
  read_escapes(input);
  return 0;
}
