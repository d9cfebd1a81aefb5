#include "cli/options/values.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>

#include "qgen/base/error.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"

namespace qgen::cli {
namespace {

[[noreturn]] void refuse(const Given& given, const std::string& expected) {
  // A long value is a text in the wrong place: its beginning tells which.
  constexpr std::size_t kShown = 60;
  throw Error(ErrorKind::usage, given.name + ": '" + shorten(given.value, kShown) + "' is not " + expected);
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
  if (std::ranges::find(words, given.value) == words.end()) refuse(given, "one of " + join(words));
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

}  // namespace qgen::cli
