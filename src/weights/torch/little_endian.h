#pragma once

#include <concepts>
#include <cstddef>

#include "qgen/base/bytes.h"

namespace qgen {

/// The unsigned integer of sizeof(T) bytes at the front of `bytes`, which must have that many.
template <std::unsigned_integral T>
[[nodiscard]] T little_endian(Bytes bytes) noexcept {
  T value = 0;
  for (std::size_t i = sizeof(T); i-- > 0;) {
    value = static_cast<T>(static_cast<T>(value << 7 << 1) | std::to_integer<T>(bytes[i]));
  }
  return value;
}

}  // namespace qgen
