#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace qgen {

class Json;
using JsonArray = std::vector<Json>;
/// Members in the order of the text.
using JsonObject = std::vector<std::pair<std::string, Json>>;

/// A read-only JSON value. Typed getters return nothing when the value is of another type; nothing is coerced
/// except that an integer is accepted where a double is asked for.
class Json {
 public:
  using Value = std::variant<std::nullptr_t, bool, std::int64_t, std::uint64_t, double, std::string,
                             JsonArray, JsonObject>;

  Json() = default;
  explicit Json(Value value) : value_(std::move(value)) {}

  [[nodiscard]] bool is_null() const noexcept { return std::holds_alternative<std::nullptr_t>(value_); }
  [[nodiscard]] std::optional<bool> as_bool() const noexcept;
  [[nodiscard]] std::optional<std::int64_t> as_int() const noexcept;  ///< integers within range only
  [[nodiscard]] std::optional<double> as_double() const noexcept;
  [[nodiscard]] const std::string* as_string() const noexcept { return std::get_if<std::string>(&value_); }
  [[nodiscard]] const JsonArray* as_array() const noexcept { return std::get_if<JsonArray>(&value_); }
  [[nodiscard]] const JsonObject* as_object() const noexcept { return std::get_if<JsonObject>(&value_); }
  [[nodiscard]] const Value& value() const noexcept { return value_; }

  /// The member named `key`, or nullptr where there is none or this is no object. Linear in the number of
  /// members.
  [[nodiscard]] const Json* find(std::string_view key) const noexcept;

  /// "null", "boolean", "integer", "number", "string", "array" or "object", for messages.
  [[nodiscard]] std::string_view type_name() const noexcept;

 private:
  Value value_;
};

/// What a JSON text may look like.
struct JsonLimits {
  std::size_t max_depth = 128;
  std::size_t max_values = 8'000'000;  ///< bounds memory: 40 bytes a value, 72 with a name, beside texts
};

/// Parses one whole JSON text (RFC 8259, UTF-8). Throws Error{file} with "`source`: ..." for malformed text,
/// nesting or a number of values beyond the limits, or a member name that occurs twice in one object (the
/// message names it). Never recurses.
Json parse_json(std::string_view text, std::string_view source, const JsonLimits& limits = {});

}  // namespace qgen
