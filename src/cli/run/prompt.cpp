#include "cli/run/prompt.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <string_view>

#include "cli/io/input.h"
#include "cli/options/option_set.h"
#include "qgen/base/error.h"
#include "qgen/base/utf8.h"

namespace qgen::cli {
namespace {

const std::string kStdin = "-";

void add_part(std::string& text, std::string part) {
  if (part.empty()) return;
  if (text.empty()) {
    text = std::move(part);
  } else {
    text.reserve(text.size() + 1 + part.size());
    text += '\n';
    text += part;
  }
}

std::string read_stdin(Messages& messages) {
  if (::isatty(STDIN_FILENO) == 1) {
    messages.note("reading the prompt from the terminal; end it with Ctrl-D on an empty line");
    return read_all(STDIN_FILENO, "stdin");
  }
  return read_all(STDIN_FILENO, "stdin", [&messages] {
    messages.note("waiting for the end of stdin, which belongs to the prompt (</dev/null for none)");
  });
}

/// Reads `digits` hexadecimal digits after text[at]; nothing where there are fewer.
std::optional<unsigned> hex_after(std::string_view text, std::size_t at, std::size_t digits) {
  const std::string_view part = text.substr(at + 1, digits);
  unsigned value = 0;
  const auto [end, problem] = std::from_chars(part.data(), part.data() + part.size(), value, 16);
  if (part.size() != digits || problem != std::errc() || end != part.data() + part.size())
    return std::nullopt;
  return value;
}

bool is_surrogate(unsigned value) {
  return value >= 0xD800 && value <= 0xDFFF;
}

/// Appends what the escape at text[at] (the character after the backslash) stands for and returns how many
/// characters that takes; 0 for an unknown one.
std::size_t append_escape(std::string_view text, std::size_t at, std::string& out) {
  constexpr std::string_view kNames = "nrt0eabfv\\'\"";
  constexpr std::string_view kValues("\n\r\t\0\x1b\a\b\f\v\\'\"", 12);
  const std::size_t known = kNames.find(text[at]);
  if (known != std::string_view::npos) {
    out += kValues[known];
    return 1;
  }
  if (text[at] == 'x') {
    if (const auto value = hex_after(text, at, 2)) {
      out += static_cast<char>(static_cast<unsigned char>(*value));
      return 3;
    }
  }
  if (text[at] == 'u') {
    const auto value = hex_after(text, at, 4);
    if (value && !is_surrogate(*value)) {
      append_utf8(out, *value);
      return 5;
    }
  }
  return 0;
}

}  // namespace

void declare_prompt(OptionSet& set, PromptOptions& options) {
  const auto take = [&options](const Given& given, bool positional) {
    if (options.text && options.positional != positional) {
      throw Error(ErrorKind::usage, "a text by -p and one without an option: give one of them");
    }
    if (options.text && positional) {
      throw Error(ErrorKind::usage,
                  "unexpected argument '" + escape_control(given.value) + "': put quotes around the prompt");
    }
    options.text = given.value;
    options.positional = positional;
  };
  set.value("-p,--prompt", "TEXT", "The text to continue; - reads it from stdin",
            [take](const Given& given) { take(given, false); });
  set.positional([take](const Given& given) { take(given, true); });
  set.value("-f,--file", "FILE", "Put a file before the text (may be repeated)",
            [&options](const Given& given) { options.files.push_back(given.value); });
  set.flag("--escape", "Read \\n, \\t, \\xHH, \\uHHHH and the like in -p TEXT as escapes", options.escape);
}

Prompt assemble_prompt(const PromptOptions& options, Messages& messages) {
  Prompt prompt;
  const bool text_is_stdin = options.text == kStdin;
  const bool file_is_stdin = std::ranges::find(options.files, kStdin) != options.files.end();
  const auto add = [&prompt](std::string part) { add_part(prompt.text, std::move(part)); };
  if (text_is_stdin || (!file_is_stdin && ::isatty(STDIN_FILENO) != 1)) add(read_stdin(messages));
  for (const std::string& file : options.files) {
    add(file == kStdin ? read_stdin(messages) : read_file(file));
  }
  if (options.text && !text_is_stdin) add(options.escape ? unescape(*options.text) : *options.text);
  prompt.given = options.text || !options.files.empty() || !prompt.text.empty();
  return prompt;
}

std::string unescape(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\\' && i + 1 < text.size()) {
      const std::size_t length = append_escape(text, i + 1, out);
      i += length;
      if (length > 0) continue;
    }
    out += text[i];
  }
  return out;
}

}  // namespace qgen::cli
