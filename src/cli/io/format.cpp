#include "cli/io/format.h"

#include <array>
#include <charconv>

namespace qgen::cli {

std::string fixed(double value, int decimals) {
  std::array<char, 400> text{};  // the largest double has 309 digits before the point
  const auto [end, problem] =
      std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed, decimals);
  return std::string(text.data(), problem == std::errc() ? end : text.data());
}

std::string human_bytes(std::int64_t bytes) {
  if (bytes < 1000) return std::to_string(bytes) + " bytes";
  constexpr std::array<const char*, 5> units{"kB", "MB", "GB", "TB", "PB"};
  auto value = static_cast<double>(bytes) / 1000;
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < units.size()) {
    value /= 1000;
    ++unit;
  }
  return fixed(value, value < 9.995 ? 2 : value < 99.95 ? 1 : 0) + " " + units[unit];
}

std::optional<double> rate(std::int64_t count, double seconds) {
  if (count <= 0 || !(seconds > 0)) return std::nullopt;
  return static_cast<double>(count) / seconds;
}

}  // namespace qgen::cli
