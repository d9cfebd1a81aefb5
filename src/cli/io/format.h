#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace qgen::cli {

/// `value` with a fixed number of decimals, the point whatever the locale.
std::string fixed(double value, int decimals);
/// "1.19 GB", "448 MB", "96 bytes": decimal units.
std::string human_bytes(std::int64_t bytes);
/// count / seconds; nothing where either is zero, so that no rate is ever infinite or NaN.
std::optional<double> rate(std::int64_t count, double seconds);

}  // namespace qgen::cli
