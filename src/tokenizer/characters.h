#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "qgen/base/utf8.h"
#include "tokenizer/class_tables.h"

namespace qgen::unicode {

/// Classes of a character, as the reference package sees them. `space` is White_Space; `upper` is Lu and Lt;
/// `numeric` is what the Digits splitter sets apart; `word` is a character of a word in the sense of an added
/// token's single_word.
enum ClassBit : std::uint8_t {
  letter = 1,
  number = 2,
  space = 4,
  mark = 8,
  upper = 16,
  lower = 32,
  numeric = 64,
  word = 128,
};

/// A character of a text with its length in bytes. A byte that is not UTF-8 is a character of no class.
struct Character {
  char32_t code_point = 0;
  std::uint8_t length = 1;
  std::uint8_t classes = 0;

  [[nodiscard]] bool is(unsigned bits) const noexcept { return (classes & bits) != 0; }
};

inline std::uint8_t classes_of(char32_t code_point) noexcept {
  const std::size_t block = kClassIndex[code_point / kClassBlockSize];
  return kClassBlocks[block * kClassBlockSize + code_point % kClassBlockSize];
}

/// The character at `offset`, which must be below text.size().
inline Character character_at(std::string_view text, std::size_t offset) noexcept {
  static_assert(kClassIndex[0] == 0 && kClassBlockSize == 128, "ASCII is the first block");
  const auto first = static_cast<unsigned char>(text[offset]);
  if (first < 0x80) return {first, 1, kClassBlocks[first]};
  const Utf8Char c = decode_utf8(text, offset);
  return {c.code_point, static_cast<std::uint8_t>(c.length),
          c.valid ? classes_of(c.code_point) : std::uint8_t{0}};
}

/// The character that ends at `offset`, which must be above 0.
inline Character character_before(std::string_view text, std::size_t offset) noexcept {
  for (std::size_t length = 2; length <= 4 && length <= offset; ++length) {
    const Character c = character_at(text, offset - length);
    if (c.length == length) return c;
  }
  return character_at(text.substr(0, offset), offset - 1);
}

}  // namespace qgen::unicode
