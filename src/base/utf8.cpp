#include "qgen/base/utf8.h"

#include <algorithm>
#include <array>

namespace qgen {
namespace {

unsigned char byte_at(std::string_view text, std::size_t i) noexcept {
  return static_cast<unsigned char>(text[i]);
}

/// What a lead byte promises: the length and the range of the second byte (Unicode 15, table 3-7).
struct Lead {
  std::size_t length = 0;  // 0: not a lead byte
  unsigned char low = 0x80;
  unsigned char high = 0xBF;
};

Lead lead_of(unsigned char byte) noexcept {
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};
  if (byte == 0xED) return {3, 0x80, 0x9F};
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};
  return {0};
}

/// How many bytes from `offset` on are a well-formed character or the beginning of one, and whether it is
/// whole.
struct Prefix {
  std::size_t length = 0;
  bool whole = false;
};

Prefix well_formed_prefix(std::string_view text, std::size_t offset) noexcept {
  const Lead lead = lead_of(byte_at(text, offset));
  if (lead.length == 0) return {0, false};
  std::size_t n = 1;
  for (; n < lead.length && offset + n < text.size(); ++n) {
    const unsigned char byte = byte_at(text, offset + n);
    const bool ok = n == 1 ? byte >= lead.low && byte <= lead.high : byte >= 0x80 && byte <= 0xBF;
    if (!ok) break;
  }
  return {n, n == lead.length};
}

void append_hex_escape(std::string& out, unsigned char byte) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  out += "\\x";
  out += digits[byte >> 4];
  out += digits[byte & 15];
}

}  // namespace

Utf8Char decode_utf8(std::string_view text, std::size_t offset) noexcept {
  const unsigned char first = byte_at(text, offset);
  if (first < 0x80) return {first, 1, true};
  const Prefix prefix = well_formed_prefix(text, offset);
  if (!prefix.whole) return {first, 1, false};
  constexpr std::array<unsigned char, 5> mask{0, 0x7F, 0x1F, 0x0F, 0x07};
  auto code_point = static_cast<char32_t>(first & mask[prefix.length]);
  for (std::size_t i = 1; i < prefix.length; ++i) {
    code_point = (code_point << 6) | static_cast<char32_t>(byte_at(text, offset + i) & 0x3F);
  }
  return {code_point, prefix.length, true};
}

void append_utf8(std::string& out, char32_t code_point) {
  const auto put = [&out](char32_t value) { out += static_cast<char>(static_cast<unsigned char>(value)); };
  if (code_point < 0x80) {
    put(code_point);
  } else if (code_point < 0x800) {
    put(0xC0 | (code_point >> 6));
    put(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    put(0xE0 | (code_point >> 12));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  } else {
    put(0xF0 | (code_point >> 18));
    put(0x80 | ((code_point >> 12) & 0x3F));
    put(0x80 | ((code_point >> 6) & 0x3F));
    put(0x80 | (code_point & 0x3F));
  }
}

std::size_t incomplete_utf8_suffix(std::string_view text) noexcept {
  const std::size_t most = std::min<std::size_t>(3, text.size());
  for (std::size_t n = 1; n <= most; ++n) {
    const std::size_t offset = text.size() - n;
    if ((byte_at(text, offset) & 0xC0) == 0x80) continue;
    const Prefix prefix = well_formed_prefix(text, offset);
    return !prefix.whole && prefix.length == n ? n : 0;
  }
  return 0;
}

std::string replace_invalid_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const Prefix prefix = well_formed_prefix(text, i);
    const std::size_t length = std::max<std::size_t>(1, prefix.length);
    if (prefix.whole) {
      out += text.substr(i, length);
    } else {
      out += "\xEF\xBF\xBD";
    }
    i += length;
  }
  return out;
}

std::string escape_control(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Char c = decode_utf8(text, i);
    const bool control = c.code_point < 0x20 || (c.code_point >= 0x7F && c.code_point < 0xA0);
    if (c.valid && !control) {
      out += text.substr(i, c.length);
    } else {
      for (std::size_t k = 0; k < c.length; ++k) append_hex_escape(out, byte_at(text, i + k));
    }
    i += c.length;
  }
  return out;
}

std::string shorten(std::string_view text, std::size_t most) {
  std::string_view head = text.substr(0, most);
  if (head.size() < text.size()) head.remove_suffix(incomplete_utf8_suffix(head));
  std::string out = escape_control(head);
  if (head.size() == text.size() && out.size() <= most) return out;
  out.resize(std::min(out.size(), most));
  out.resize(out.size() - incomplete_utf8_suffix(out));
  return out + "\u2026";
}

}  // namespace qgen
