#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace qgen {

// Parts of messages.

/// The shortest text that reads back as `value`, whatever the locale.
[[nodiscard]] std::string shortest(double value);

/// "[2, 3]".
[[nodiscard]] std::string shape_text(std::span<const std::int64_t> shape);

/// A text from a file in double quotes, short and safe to print (shorten() in utf8.h).
[[nodiscard]] std::string in_quotes(std::string_view text);

/// The texts of a range with `separator` between them.
template <typename Texts>
[[nodiscard]] std::string join(const Texts& texts, std::string_view separator = ", ") {
  std::string out;
  bool first = true;
  for (const auto& text : texts) {
    if (!first) out += separator;
    out += text;
    first = false;
  }
  return out;
}

}  // namespace qgen
