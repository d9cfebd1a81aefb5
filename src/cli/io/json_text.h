#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace qgen::cli {

// Json is the JSON library's own type; these are templates so that no header needs the library.

/// `value` on one line, without a newline; always valid JSON and valid UTF-8.
template <typename Json>
[[nodiscard]] std::string json_text(const Json& value) {
  return value.dump(-1, ' ', false, Json::error_handler_t::replace);
}

/// The number, or null where there is none.
template <typename Json, typename Number>
[[nodiscard]] Json or_null(const std::optional<Number>& value) {
  return value ? Json(*value) : Json();
}

/// `bytes` as a JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string json_string(std::string_view bytes);

}  // namespace qgen::cli
