#pragma once

#include <cstdint>
#include <string_view>

namespace qgen::test {

/// FNV-1a, 64 bits: how golden files fingerprint long outputs (tools/reference/base_values.py computes the
/// same).
class Fnv1a {
 public:
  void add(std::string_view bytes) noexcept {
    for (const char c : bytes) add_byte(static_cast<unsigned char>(c));
  }
  /// The two bytes of `value`, low one first.
  void add(std::uint16_t value) noexcept {
    add_byte(value & 0xFFU);
    add_byte(value >> 8);
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return hash_; }

 private:
  void add_byte(unsigned byte) noexcept { hash_ = (hash_ ^ byte) * 0x100000001B3U; }
  std::uint64_t hash_ = 0xCBF29CE484222325U;
};

}  // namespace qgen::test
