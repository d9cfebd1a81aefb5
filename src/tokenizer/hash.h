#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace qgen {

/// Spreads the bits of `value`; take the result's high bits.
inline std::uint64_t mix_bits(std::uint64_t value) noexcept {
  value *= 0x9E3779B97F4A7C15;
  value ^= value >> 32;
  return value * 0xD6E8FEB86659FD93;
}

/// A hash of short strings; take its high bits.
inline std::uint64_t hash_bytes(std::string_view bytes) noexcept {
  std::uint64_t hash = bytes.size();
  while (bytes.size() >= sizeof hash) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    hash = mix_bits(hash ^ word);
    bytes.remove_prefix(sizeof word);
  }
  std::uint64_t rest = 0;
  if (!bytes.empty()) std::memcpy(&rest, bytes.data(), bytes.size());
  return mix_bits(hash ^ rest);
}

}  // namespace qgen
