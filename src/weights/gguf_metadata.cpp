#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>

#include "qgen/base/error.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"
#include "qgen/weights/gguf.h"

namespace qgen {
namespace {

constexpr std::array<std::string_view, 13> kTypeNames{"u8",   "i8",     "u16",   "i16", "u32", "i32", "f32",
                                                      "bool", "string", "array", "u64", "i64", "f64"};

std::string_view type_name(GgufType type) {
  return kTypeNames[static_cast<std::size_t>(type)];
}

std::uint64_t little_endian(Bytes bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

/// The bytes of an integer; nothing for other types.
std::optional<std::size_t> integer_bytes(GgufType type) {
  switch (type) {
    case GgufType::u8:
    case GgufType::i8:
      return 1;
    case GgufType::u16:
    case GgufType::i16:
      return 2;
    case GgufType::u32:
    case GgufType::i32:
      return 4;
    case GgufType::u64:
    case GgufType::i64:
      return 8;
    default:
      return std::nullopt;
  }
}

/// What an integer of this type means; the largest signed number for those beyond it.
std::int64_t integer_of(GgufType type, Bytes bytes) {
  const std::uint64_t value = little_endian(bytes);
  switch (type) {
    case GgufType::i8:
      return static_cast<std::int8_t>(value);
    case GgufType::i16:
      return static_cast<std::int16_t>(value);
    case GgufType::i32:
      return static_cast<std::int32_t>(value);
    case GgufType::i64:
      return static_cast<std::int64_t>(value);
    default:
      constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
      return value > static_cast<std::uint64_t>(kMax) ? kMax : static_cast<std::int64_t>(value);
  }
}

double decimal_of(float value) {
  std::array<char, 64> text{};
  const auto [end, problem] = std::to_chars(text.data(), text.data() + text.size(), value);
  double decimal = value;
  std::from_chars(text.data(), end, decimal);
  return problem == std::errc() ? decimal : value;
}

std::optional<double> number_of(const GgufValue& value) {
  if (value.type == GgufType::f32) {
    return decimal_of(std::bit_cast<float>(static_cast<std::uint32_t>(little_endian(value.bytes))));
  }
  if (value.type == GgufType::f64) return std::bit_cast<double>(little_endian(value.bytes));
  if (integer_bytes(value.type)) return static_cast<double>(integer_of(value.type, value.bytes));
  return std::nullopt;
}

std::string describe(const GgufValue& value) {
  if (value.type == GgufType::boolean) return little_endian(value.bytes) != 0 ? "true" : "false";
  if (value.type == GgufType::string) return in_quotes(as_text(value.bytes));
  if (value.type == GgufType::array) {
    return "an array of " + std::to_string(value.count) + " " + std::string(type_name(value.element));
  }
  if (integer_bytes(value.type)) return std::to_string(integer_of(value.type, value.bytes));
  return shortest(*number_of(value)) + " (" + std::string(type_name(value.type)) + ")";
}

}  // namespace

void GgufMetadata::fail(std::string_view key, const std::string& reason, ErrorKind kind) const {
  throw Error(kind, source_ + ": " + shorten(key) + ": " + reason);
}

void GgufMetadata::refuse(std::string_view key, const std::string& expected, const GgufValue& found) const {
  fail(key, expected + " expected, " + describe(found) + " found");
}

const GgufValue* GgufMetadata::find(std::string_view key) const {
  const auto found = entries_.find(key);
  return found == entries_.end() ? nullptr : &found->second;
}

std::optional<bool> GgufMetadata::boolean(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::boolean) refuse(key, "a bool", *value);
  return little_endian(value->bytes) != 0;
}

std::optional<std::int64_t> GgufMetadata::integer(std::string_view key, std::int64_t low,
                                                  std::int64_t high) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::int64_t> number =
      integer_bytes(value->type) ? std::optional(integer_of(value->type, value->bytes)) : std::nullopt;
  if (!number || *number < low || *number > high) {
    refuse(key, "an integer from " + std::to_string(low) + " to " + std::to_string(high), *value);
  }
  return number;
}

std::optional<double> GgufMetadata::number(std::string_view key, double low, double high) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  const std::optional<double> number = number_of(*value);
  if (!number) refuse(key, "a number", *value);
  if (!std::isfinite(*number) || !(*number >= low && *number <= high)) {
    refuse(key, "a number from " + shortest(low) + " to " + shortest(high), *value);
  }
  return number;
}

std::optional<std::string_view> GgufMetadata::text(std::string_view key) const {
  const GgufValue* value = find(key);
  if (value == nullptr) return std::nullopt;
  if (value->type != GgufType::string) refuse(key, "a string", *value);
  return as_text(value->bytes);
}

const GgufValue* GgufMetadata::find_array(std::string_view key, const char* expected) const {
  const GgufValue* value = find(key);
  if (value != nullptr && value->type != GgufType::array) refuse(key, expected, *value);
  return value;
}

std::optional<std::vector<std::string_view>> GgufMetadata::texts(std::string_view key) const {
  constexpr const char* kExpected = "an array of strings";
  const GgufValue* value = find_array(key, kExpected);
  if (value == nullptr) return std::nullopt;
  if (value->element != GgufType::string) refuse(key, kExpected, *value);
  std::vector<std::string_view> texts;
  texts.reserve(value->count);
  Bytes rest = value->bytes;
  for (std::uint64_t i = 0; i < value->count; ++i) {
    const std::uint64_t length = little_endian(rest.first(sizeof(std::uint64_t)));
    texts.push_back(as_text(rest.subspan(sizeof(std::uint64_t), length)));
    rest = rest.subspan(sizeof(std::uint64_t) + length);
  }
  return texts;
}

std::optional<std::vector<std::int64_t>> GgufMetadata::integers(std::string_view key) const {
  constexpr const char* kExpected = "an array of integers";
  const GgufValue* value = find_array(key, kExpected);
  if (value == nullptr) return std::nullopt;
  const std::optional<std::size_t> size = integer_bytes(value->element);
  if (!size) refuse(key, kExpected, *value);
  std::vector<std::int64_t> numbers;
  numbers.reserve(value->count);
  for (std::uint64_t i = 0; i < value->count; ++i) {
    numbers.push_back(integer_of(value->element, value->bytes.subspan(i * *size, *size)));
  }
  return numbers;
}

}  // namespace qgen
