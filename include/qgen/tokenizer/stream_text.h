#pragma once

#include <string>
#include <string_view>

namespace qgen {

/// Turns the bytes of successive tokens into text that can be shown at once: whole UTF-8 characters only.
/// Bytes that can no longer become a character are passed on as they are (the reader of a pipe gets the
/// model's bytes).
class StreamText {
 public:
  /// Adds a token's bytes and returns what is complete now.
  std::string push(std::string_view bytes);
  /// Returns what is left at the end, complete or not.
  std::string flush();

 private:
  std::string held_;  // at most 3 bytes
};

}  // namespace qgen
