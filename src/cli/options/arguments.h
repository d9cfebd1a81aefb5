#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qgen::cli {

/// One way to write an option: "-n" or "--max-tokens", both with the canonical name "--max-tokens".
struct OptionSpelling {
  std::string spelling;
  std::string canonical;
  bool takes_value = false;
};

/// An option as it was given, or a positional text, which has empty names.
struct Argument {
  std::string canonical;
  std::string typed;  ///< as the user wrote it, for messages
  std::string value;
};

/// Splits a command line into options and positional texts. `-` and `_` are equal in long options;
/// "--name=value", "-nvalue" and joined flags are understood; a value is taken as it is, also where it begins
/// with a dash; "--" ends the options; "-" alone is a text. Throws Error{usage} for an unknown option (naming
/// the nearest known one), a missing value and a value for an option that takes none.
std::vector<Argument> read_arguments(std::span<const std::string> arguments,
                                     std::span<const OptionSpelling> options);

/// The spelling among `options` with the smallest edit distance to `typed`; empty if there are none.
std::string nearest_spelling(std::string_view typed, std::span<const OptionSpelling> options);

}  // namespace qgen::cli
