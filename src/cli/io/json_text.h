#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace qgen::cli {

using OrderedJson = nlohmann::ordered_json;

/// `value` on one line, without a newline; always valid JSON and valid UTF-8.
[[nodiscard]] std::string json_text(const OrderedJson& value);
/// `bytes` as a JSON string with its quotes; bytes that are no UTF-8 become U+FFFD.
[[nodiscard]] std::string json_string(std::string_view bytes);
/// The number, or null where there is none.
[[nodiscard]] OrderedJson number_or_null(std::optional<double> value);

}  // namespace qgen::cli
