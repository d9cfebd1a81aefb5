#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace qgen::cli {

/// An option that was given: its name as typed, and its value.
struct Given {
  std::string name;
  std::string value;
};

// Strict readers of option values, independent of the locale. Each throws Error{usage} that names the option,
// the value and what is expected.

/// A whole number in decimal, low..high.
std::int64_t read_integer(const Given& given, std::int64_t low, std::int64_t high);
/// A whole number in decimal, 0..2^64-1.
std::uint64_t read_unsigned(const Given& given);
/// A finite decimal number, low..high.
double read_real(const Given& given, double low, double high);
/// One of `words`.
std::string read_choice(const Given& given, std::span<const std::string_view> words);
/// The parts between commas, none of them empty.
std::vector<Given> split_list(const Given& given);

}  // namespace qgen::cli
