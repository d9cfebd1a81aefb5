#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace qgen {

/// One decoding step over text that may not be valid UTF-8.
struct Utf8Char {
  char32_t code_point = 0;  ///< the scalar value, or the raw byte value where valid is false
  std::size_t length = 1;   ///< bytes consumed: 1..4; 1 where valid is false
  bool valid = false;
};

/// Reads one character at `offset` (which must be below text.size()). Overlong forms, surrogates, values
/// above U+10FFFF, stray and missing continuation bytes are invalid (Unicode 15, table 3-7), one byte at a
/// time.
Utf8Char decode_utf8(std::string_view text, std::size_t offset) noexcept;

/// Appends `code_point` (a scalar value) as UTF-8.
void append_utf8(std::string& out, char32_t code_point);

/// How many bytes at the end of `text` are the beginning of a character that more bytes could still complete
/// (0..3).
std::size_t incomplete_utf8_suffix(std::string_view text) noexcept;

/// `text` with each maximal ill-formed part replaced by U+FFFD, as the Unicode standard recommends and as
/// Python's bytes.decode("utf-8", "replace") does.
std::string replace_invalid_utf8(std::string_view text);

/// `text` made safe to print: control characters (C0, DEL, C1) and invalid bytes become \xNN, everything else
/// stays.
std::string escape_control(std::string_view text);

/// escape_control(text) for messages, which must not be as long as a file makes a name: what is longer than
/// `most` bytes is cut at the border of a character and ends with "…".
std::string shorten(std::string_view text, std::size_t most = 200);

}  // namespace qgen
