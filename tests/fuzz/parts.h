#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace qgen::fuzz {

/// One input as several files: each but the last ends at a NUL, which no text of them has. Those behind the
/// end of the input are empty.
template <std::size_t kCount>
std::array<std::string_view, kCount> parts_of(std::string_view input) {
  std::array<std::string_view, kCount> parts;
  for (std::size_t i = 0; i + 1 < kCount; ++i) {
    const std::size_t end = std::min(input.find('\0'), input.size());
    parts[i] = input.substr(0, end);
    input.remove_prefix(std::min(end + 1, input.size()));
  }
  parts[kCount - 1] = input;
  return parts;
}

/// Ends the run, which is how a fuzz target reports a fault.
inline void check(bool condition) {
  if (!condition) __builtin_trap();
}

/// Messages and lines that quote from files must not reach a terminal as they are.
inline void check_shown(std::string_view line) {
  check(line.find_first_of("\x1b\x07\r\n") == std::string_view::npos);
}

}  // namespace qgen::fuzz
