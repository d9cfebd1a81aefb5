#include "cli/options/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include "qgen/base/error.h"
#include "qgen/base/utf8.h"

namespace qgen::cli {
namespace {

[[noreturn]] void refuse(const Given& given, const std::string& expected) {
  // A long value is a text in the wrong place: its beginning tells which.
  constexpr std::size_t kShown = 60;
  const bool whole = given.value.size() <= kShown;
  const std::string value = escape_control(given.value.substr(0, kShown)) + (whole ? "" : "...");
  throw Error(ErrorKind::usage, given.name + ": '" + value + "' is not " + expected);
}

/// The whole text as a number; nothing for a malformed one, trailing characters or overflow.
template <typename Number>
bool parse_whole(std::string_view text, Number& number) {
  const char* const end = text.data() + text.size();
  const auto [rest, problem] = std::from_chars(text.data(), end, number);
  return problem == std::errc() && rest == end;
}

}  // namespace

std::int64_t read_integer(const Given& given, std::int64_t low, std::int64_t high) {
  std::int64_t number = 0;
  if (!parse_whole(given.value, number) || number < low || number > high) {
    refuse(given, "a whole number from " + std::to_string(low) + " to " + std::to_string(high));
  }
  return number;
}

std::uint64_t read_unsigned(const Given& given) {
  std::uint64_t number = 0;
  if (!parse_whole(given.value, number)) {
    refuse(given, "a whole number from 0 to " + std::to_string(std::numeric_limits<std::uint64_t>::max()));
  }
  return number;
}

double read_real(const Given& given, double low, double high) {
  double number = 0;
  if (!parse_whole(given.value, number) || !std::isfinite(number) || number < low || number > high) {
    refuse(given, std::isfinite(high) ? "a number from " + shortest(low) + " to " + shortest(high)
                                      : "a number of at least " + shortest(low));
  }
  return number;
}

std::string read_choice(const Given& given, std::span<const std::string_view> words) {
  if (std::ranges::find(words, given.value) == words.end()) {
    std::string list;
    for (const std::string_view word : words) list += (list.empty() ? "" : ", ") + std::string(word);
    refuse(given, "one of " + list);
  }
  return given.value;
}

std::vector<Given> split_list(const Given& given) {
  std::vector<Given> parts;
  std::string_view rest = given.value;
  while (true) {
    const std::size_t comma = rest.find(',');
    if (comma == 0 || rest.empty()) refuse(given, "a list with commas between its parts");
    parts.push_back({given.name, std::string(rest.substr(0, comma))});
    if (comma == std::string_view::npos) return parts;
    rest.remove_prefix(comma + 1);
  }
}

std::string shortest(double value) {
  std::array<char, 32> text{};
  const auto [end, problem] = std::to_chars(text.data(), text.data() + text.size(), value);
  return std::string(text.data(), problem == std::errc() ? end : text.data());
}

}  // namespace qgen::cli
