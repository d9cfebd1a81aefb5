#include "qgen/base/text.h"

#include <array>
#include <charconv>

#include "qgen/base/utf8.h"

namespace qgen {

std::string shortest(double value) {
  std::array<char, 32> text{};
  const auto end = std::to_chars(text.data(), text.data() + text.size(), value).ptr;
  return {text.data(), end};
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "[";
  for (const std::int64_t n : shape) text += (text.size() > 1 ? ", " : "") + std::to_string(n);
  return text + "]";
}

std::string in_quotes(std::string_view text) {
  return '"' + shorten(text) + '"';
}

}  // namespace qgen
