#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/io/messages.h"

namespace qgen::cli {

class OptionSet;

/// Where the text comes from.
struct PromptOptions {
  std::optional<std::string> text;  ///< -p or the positional text; "-" is stdin
  bool positional = false;          ///< `text` came without -p
  std::vector<std::string> files;   ///< -f; "-" is stdin
  bool escape = false;
};

/// -p, -f, --escape and the positional text.
void declare_prompt(OptionSet& set, PromptOptions& options);

/// What assemble_prompt found.
struct Prompt {
  bool given = false;  ///< some source was named, or stdin had something to say
  std::string text;
};

/// The text of all sources in the order stdin, files, -p, joined by one newline; empty sources leave no
/// trace. Bytes are taken as they are, the last newline of a file included. Stdin is read if it is no
/// terminal, or if it was named. Throws Error{file} for what cannot be read.
[[nodiscard]] Prompt assemble_prompt(const PromptOptions& options, Messages& messages);

/// `text` with \n \r \t \0 \e \a \b \f \v \\ \' \" \xHH and \uHHHH replaced; other escapes stay as they are.
[[nodiscard]] std::string unescape(std::string_view text);

}  // namespace qgen::cli
