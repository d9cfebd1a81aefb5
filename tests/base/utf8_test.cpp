#include "qgen/base/utf8.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdint>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/fnv.h"

namespace qgen {
namespace {

using namespace std::string_literals;

std::string utf8(char32_t code_point) {
  std::string out;
  append_utf8(out, code_point);
  return out;
}

bool is_scalar(char32_t c) {
  return c <= 0x10FFFF && (c < 0xD800 || c > 0xDFFF);
}

/// Table 3-7 of the Unicode standard, written out.
bool well_formed(const std::string& s) {
  struct Row {
    unsigned char first_low, first_high, second_low, second_high;
    std::size_t length;
  };
  constexpr std::array<Row, 9> table{{{0x00, 0x7F, 0, 0, 1},
                                      {0xC2, 0xDF, 0x80, 0xBF, 2},
                                      {0xE0, 0xE0, 0xA0, 0xBF, 3},
                                      {0xE1, 0xEC, 0x80, 0xBF, 3},
                                      {0xED, 0xED, 0x80, 0x9F, 3},
                                      {0xEE, 0xEF, 0x80, 0xBF, 3},
                                      {0xF0, 0xF0, 0x90, 0xBF, 4},
                                      {0xF1, 0xF3, 0x80, 0xBF, 4},
                                      {0xF4, 0xF4, 0x80, 0x8F, 4}}};
  const auto in = [&s](std::size_t i, unsigned char low, unsigned char high) {
    const auto byte = static_cast<unsigned char>(s[i]);
    return byte >= low && byte <= high;
  };
  for (const Row& row : table) {
    if (s.size() != row.length || !in(0, row.first_low, row.first_high)) continue;
    if (row.length > 1 && !in(1, row.second_low, row.second_high)) continue;
    bool tail = true;
    for (std::size_t i = 2; i < row.length; ++i) tail = tail && in(i, 0x80, 0xBF);
    if (tail) return true;
  }
  return false;
}

/// Bytes on either side of each border of that table.
constexpr std::string_view kBorders =
    "\x41\x7F\x80\x8F\x90\x9F\xA0\xBF\xC0\xC1\xC2\xDF\xE0\xE1\xEC\xED\xEE\xEF\xF0\xF1\xF3\xF4\xF5\xFF";

/// Those of them that can follow a lead byte.
constexpr std::string_view kTails = "\x80\x8F\x90\x9F\xA0\xBF";

/// Calls visit with every string of `length` bytes from `alphabet`, the last byte changing fastest.
template <typename Visit>
void for_each_string(std::string_view alphabet, std::size_t length, const Visit& visit) {
  std::vector<std::size_t> digits(length, 0);
  std::string text(length, alphabet[0]);
  for (;;) {
    for (std::size_t i = 0; i < length; ++i) text[i] = alphabet[digits[i]];
    visit(text);
    std::size_t i = length;
    while (i > 0 && ++digits[i - 1] == alphabet.size()) digits[--i] = 0;
    if (i == 0) return;
  }
}

TEST(Utf8, EveryScalarValueSurvivesEncodingAndDecoding) {
  for (char32_t c = 0; c <= 0x10FFFF; ++c) {
    if (!is_scalar(c)) continue;
    const std::string text = utf8(c);
    const Utf8Char decoded = decode_utf8(text, 0);
    ASSERT_TRUE(decoded.valid) << std::hex << static_cast<std::uint32_t>(c);
    ASSERT_EQ(decoded.code_point, c);
    ASSERT_EQ(decoded.length, text.size());
  }
}

TEST(Utf8, EncodesAtTheBordersOfLengths) {
  EXPECT_EQ(utf8(0x7F), "\x7F");
  EXPECT_EQ(utf8(0x80), "\xC2\x80");
  EXPECT_EQ(utf8(0x7FF), "\xDF\xBF");
  EXPECT_EQ(utf8(0x800), "\xE0\xA0\x80");
  EXPECT_EQ(utf8(0xFFFF), "\xEF\xBF\xBF");
  EXPECT_EQ(utf8(0x10000), "\xF0\x90\x80\x80");
  EXPECT_EQ(utf8(0x10FFFF), "\xF4\x8F\xBF\xBF");
}

TEST(Utf8, AcceptsExactlyTheWellFormedSequences) {
  for (std::size_t length = 1; length <= 4; ++length) {
    for_each_string(kBorders, length, [](const std::string& text) {
      const Utf8Char c = decode_utf8(text, 0);
      bool expected = false;
      for (std::size_t n = 1; n <= text.size() && !expected; ++n) {
        expected = well_formed(text.substr(0, n));
        if (expected) {
          ASSERT_EQ(c.length, n);
        }
      }
      ASSERT_EQ(c.valid, expected);
      if (!expected) {
        ASSERT_EQ(c.length, 1U);
        ASSERT_EQ(c.code_point, static_cast<unsigned char>(text[0]));
      }
    });
  }
}

TEST(Utf8, DecodesAtAnOffset) {
  const std::string text = "a\xE5\x8D\x95\xFFz";
  EXPECT_EQ(decode_utf8(text, 1).code_point, U'\u5355');
  EXPECT_FALSE(decode_utf8(text, 2).valid);
  EXPECT_FALSE(decode_utf8(text, 4).valid);
  EXPECT_EQ(decode_utf8(text, 5).code_point, U'z');
}

TEST(Utf8, IncompleteSuffixIsWhatMoreBytesCouldComplete) {
  EXPECT_EQ(incomplete_utf8_suffix(""), 0U);
  EXPECT_EQ(incomplete_utf8_suffix("abc"), 0U);
  EXPECT_EQ(incomplete_utf8_suffix("a\xC3"), 1U);
  EXPECT_EQ(incomplete_utf8_suffix("a\xC3\xA9"), 0U);
  EXPECT_EQ(incomplete_utf8_suffix("\xE5\x8D"), 2U);
  EXPECT_EQ(incomplete_utf8_suffix("\xF0\x9F\x98"), 3U);
  EXPECT_EQ(incomplete_utf8_suffix("\xF0\x9F\x98\x8A"), 0U);
  EXPECT_EQ(incomplete_utf8_suffix("\xE0\x80"), 0U) << "no byte can make an overlong form right";
  EXPECT_EQ(incomplete_utf8_suffix("\xED\xA0"), 0U) << "nor a surrogate";
  EXPECT_EQ(incomplete_utf8_suffix("\xF4\x90"), 0U) << "nor a value above U+10FFFF";
  EXPECT_EQ(incomplete_utf8_suffix("\x80\x80\x80"), 0U);
  EXPECT_EQ(incomplete_utf8_suffix("\xFF"), 0U);
}

TEST(Utf8, IncompleteSuffixAgreesWithTryingEveryCompletion) {
  for (std::size_t length = 1; length <= 3; ++length) {
    for_each_string(kBorders, length, [](const std::string& text) {
      std::size_t expected = 0;
      for (std::size_t n = 1; n <= text.size() && expected == 0; ++n) {
        const std::string end = text.substr(text.size() - n);
        for (std::size_t more = 1; n + more <= 4 && expected == 0; ++more) {
          for_each_string(kTails, more, [&](const std::string& rest) {
            if (well_formed(end + rest)) expected = n;
          });
        }
      }
      ASSERT_EQ(incomplete_utf8_suffix(text), expected);
    });
  }
}

std::string from_hex(std::string_view hex) {
  std::string out;
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2) {
    out += static_cast<char>(std::stoi(std::string(hex.substr(i, 2)), nullptr, 16));
  }
  return out;
}

TEST(Utf8, ReplacesInvalidPartsAsPythonDoes) {
  std::ifstream golden(QGEN_TEST_DATA "/golden/utf8_replace.txt");
  std::string fingerprint_of_four, input, expected;
  ASSERT_TRUE(golden >> fingerprint_of_four);
  int cases = 0;
  while (golden >> input >> expected) {
    EXPECT_EQ(replace_invalid_utf8(from_hex(input)), from_hex(expected)) << input;
    ++cases;
  }
  EXPECT_EQ(cases, 1000);

  test::Fnv1a all;
  for_each_string(kBorders, 4, [&all](const std::string& text) { all.add(replace_invalid_utf8(text)); });
  EXPECT_EQ(all.value(), std::stoull(fingerprint_of_four, nullptr, 16));
}

TEST(Utf8, ReplacementLeavesValidTextAlone) {
  const std::string text = "z\xC3\xA9 \xE5\x8D\x95 \xF0\x9F\x98\x8A\n\0"s;
  EXPECT_EQ(replace_invalid_utf8(text), text);
  EXPECT_EQ(replace_invalid_utf8(""), "");
}

TEST(EscapeControl, EscapesC0DelAndC1) {
  EXPECT_EQ(escape_control("\x1b]8;;http://x\x1b\\"), "\\x1B]8;;http://x\\x1B\\");
  EXPECT_EQ(escape_control("a\nb\tc\rd\0e"s), "a\\x0Ab\\x09c\\x0Dd\\x00e");
  EXPECT_EQ(escape_control("\x7F"), "\\x7F");
  EXPECT_EQ(escape_control("\xC2\x9B"
                           "2J"),
            "\\xC2\\x9B"
            "2J");
  for (char32_t c = 0; c < 0x200; ++c) {
    const bool control = c < 0x20 || (c >= 0x7F && c < 0xA0);
    EXPECT_EQ(escape_control(utf8(c)) != utf8(c), control) << static_cast<std::uint32_t>(c);
  }
}

TEST(Shorten, KeepsWhatIsShortEnough) {
  EXPECT_EQ(shorten(""), "");
  EXPECT_EQ(shorten(std::string(200, 'x')), std::string(200, 'x'));
  EXPECT_EQ(shorten("\x1b\xff"), "\\x1B\\xFF");
  EXPECT_EQ(shorten("\xC3\xA9", 2), "\xC3\xA9");
}

TEST(Shorten, CutsAtTheBorderOfACharacter) {
  EXPECT_EQ(shorten("abcd", 3), "abc\u2026");
  const std::string text = "a\xF0\x9F\x98\x8A\xE5\x8D\x95";
  for (std::size_t most = 1; most < 5; ++most) EXPECT_EQ(shorten(text, most), "a\u2026");
  for (std::size_t most = 5; most < 8; ++most) {
    EXPECT_EQ(shorten(text, most), "a\xF0\x9F\x98\x8A\u2026");
  }
  EXPECT_EQ(shorten(text, 8), text);
}

TEST(Shorten, CountsWhatIsShown) {
  EXPECT_EQ(shorten(std::string(3'000'000, '\x01'), 8), "\\x01\\x01\u2026");
  EXPECT_EQ(shorten("\x01\x02\x03", 8), "\\x01\\x02\u2026");
}

TEST(EscapeControl, EscapesInvalidBytesAndKeepsText) {
  EXPECT_EQ(escape_control("ok \xC3\xA9 \xF0\x9F\x98\x8A"), "ok \xC3\xA9 \xF0\x9F\x98\x8A");
  EXPECT_EQ(escape_control("\xFF\xC3(\xE5\x8D"), "\\xFF\\xC3(\\xE5\\x8D");
}

}  // namespace
}  // namespace qgen
