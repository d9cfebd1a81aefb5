#pragma once

#include <algorithm>
#include <cstdint>

namespace qgen {

/// A range of rows, units or ids.
struct Range {
  std::int64_t begin = 0, end = 0;
};

/// The part of [0, count) that falls to `member` of `members` when cut at multiples of `block`.
inline Range share(std::int64_t count, std::int64_t block, int member, int members) noexcept {
  const std::int64_t blocks = (count + block - 1) / block;
  const auto border = [&](int m) { return std::min(count, blocks * m / members * block); };
  return {border(member), border(member + 1)};
}

}  // namespace qgen
