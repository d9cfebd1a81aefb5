#include "tokenizer/byte_alphabet.h"

#include <array>
#include <cstddef>
#include <cstdint>

#include "qgen/base/utf8.h"

namespace qgen::byte_alphabet {
namespace {

constexpr bool stands_for_itself(unsigned byte) {
  return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD && byte <= 0xFF);
}

struct Spelling {
  std::array<char, 2> bytes{};
  std::uint8_t length = 0;
};

constexpr std::array<Spelling, 256> make_spellings() {
  std::array<Spelling, 256> table{};
  unsigned next = 0x100;
  for (unsigned byte = 0; byte < 256; ++byte) {
    const unsigned c = stands_for_itself(byte) ? byte : next++;
    if (c < 0x80) {
      table[byte] = {{static_cast<char>(c)}, 1};
    } else {
      table[byte] = {{static_cast<char>(0xC0 | (c >> 6)), static_cast<char>(0x80 | (c & 0x3F))}, 2};
    }
  }
  return table;
}

constexpr std::size_t kEnd = 0x144;  // one more than the last character of the alphabet
constexpr std::int16_t kNone = -1;

constexpr std::array<std::int16_t, kEnd> make_bytes() {
  std::array<std::int16_t, kEnd> table{};
  for (auto& entry : table) entry = kNone;
  std::size_t next = 0x100;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const std::size_t c = stands_for_itself(static_cast<unsigned>(byte)) ? byte : next++;
    table[c] = static_cast<std::int16_t>(byte);
  }
  return table;
}

constexpr std::array<Spelling, 256> kSpellings = make_spellings();
constexpr std::array<std::int16_t, kEnd> kBytes = make_bytes();

}  // namespace

std::string_view spelling_of(unsigned char byte) noexcept {
  const Spelling& spelling = kSpellings[byte];
  return {spelling.bytes.data(), spelling.length};
}

std::optional<std::string> bytes_of(std::string_view spelling) {
  std::string bytes;
  bytes.reserve(spelling.size());
  for (std::size_t i = 0; i < spelling.size();) {
    const Utf8Char c = decode_utf8(spelling, i);
    const std::int16_t byte = c.valid && c.code_point < kEnd ? kBytes[c.code_point] : kNone;
    if (byte == kNone) return std::nullopt;
    bytes += static_cast<char>(static_cast<unsigned char>(byte));
    i += c.length;
  }
  return bytes;
}

}  // namespace qgen::byte_alphabet
