#include "weights/config_reader.h"

#include <limits>
#include <utility>

#include "qgen/base/error.h"
#include "qgen/base/text.h"

namespace qgen {
namespace {

constexpr std::int64_t kMaxTokenId = std::numeric_limits<TokenId>::max();

std::string integer_range(std::int64_t low, std::int64_t high) {
  return "an integer from " + std::to_string(low) + " to " + std::to_string(high);
}

}  // namespace

std::string describe(const Json& value) {
  if (const auto* n = std::get_if<std::int64_t>(&value.value())) return std::to_string(*n);
  if (const auto* n = std::get_if<std::uint64_t>(&value.value())) return std::to_string(*n);
  if (const auto* n = std::get_if<double>(&value.value())) return shortest(*n);
  if (const auto* b = std::get_if<bool>(&value.value())) return *b ? "true" : "false";
  if (const std::string* text = value.as_string()) return in_quotes(*text);
  return std::string(value.type_name());
}

ConfigReader::ConfigReader(const Json& object, std::string source)
    : object_(object), source_(std::move(source)) {
  if (object_.as_object() == nullptr) {
    throw Error(ErrorKind::file, source_ + ": an object expected, " + describe(object_) + " found");
  }
}

void ConfigReader::refuse(std::string_view key, std::string_view expected, const Json& found) const {
  throw Error(ErrorKind::file, source_ + ": " + std::string(key) + ": " + std::string(expected) +
                                   " expected, " + describe(found) + " found");
}

const Json* ConfigReader::find(std::string_view key) const {
  const Json* value = object_.find(key);
  return value == nullptr || value->is_null() ? nullptr : value;
}

std::optional<bool> ConfigReader::boolean(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (!value->as_bool()) refuse(key, "true or false", *value);
  return value->as_bool();
}

std::optional<std::int64_t> ConfigReader::integer(std::string_view key, std::int64_t low,
                                                  std::int64_t high) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::int64_t> number = value->as_int();
  if (!number || *number < low || *number > high) refuse(key, integer_range(low, high), *value);
  return number;
}

std::optional<double> ConfigReader::number(std::string_view key, const NumberRange& range) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<double> number = value->as_double();
  if (!number || !(*number >= range.low && *number <= range.high)) refuse(key, range.text, *value);
  return number;
}

std::optional<std::string> ConfigReader::text(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->as_string() == nullptr) refuse(key, "a string", *value);
  return *value->as_string();
}

const Json* ConfigReader::object(std::string_view key) const {
  const Json* value = find(key);
  if (value != nullptr && value->as_object() == nullptr) refuse(key, "an object", *value);
  return value;
}

std::vector<std::string> ConfigReader::texts(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  const JsonArray* array = value->as_array();
  if (array == nullptr) refuse(key, "a list of strings", *value);
  std::vector<std::string> result;
  for (const Json& element : *array) {
    if (element.as_string() == nullptr) refuse(key, "a list of strings", element);
    result.push_back(*element.as_string());
  }
  return result;
}

std::vector<std::int64_t> ConfigReader::integers(std::string_view key, std::int64_t low,
                                                 std::int64_t high) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  const JsonArray* array = value->as_array();
  if (array == nullptr) refuse(key, "a list of integers", *value);
  std::vector<std::int64_t> result;
  for (const Json& element : *array) {
    const std::optional<std::int64_t> number = element.as_int();
    if (!number || *number < low || *number > high) refuse(key, integer_range(low, high), element);
    result.push_back(*number);
  }
  return result;
}

std::vector<TokenId> ConfigReader::token_ids(std::string_view key) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  const JsonArray one{*value};
  const JsonArray* array = value->as_array();
  std::vector<TokenId> ids;
  for (const Json& element : array == nullptr ? one : *array) {
    const std::optional<std::int64_t> id = element.as_int();
    if (!id || *id < 0 || *id > kMaxTokenId) refuse(key, integer_range(0, kMaxTokenId), element);
    ids.push_back(static_cast<TokenId>(*id));
  }
  return ids;
}

}  // namespace qgen
