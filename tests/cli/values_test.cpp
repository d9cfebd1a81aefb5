#include "cli/options/values.h"

#include <gmock/gmock.h>

#include <array>
#include <cmath>
#include <limits>

#include "qgen/base/error.h"

namespace qgen::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

std::int64_t integer(const std::string& text) {
  return read_integer({"-n", text}, -1, 1000);
}
double real(const std::string& text) {
  return read_real({"--top-p", text}, 0, 1);
}

TEST(Values, IntegersAreRead) {
  EXPECT_EQ(integer("0"), 0);
  EXPECT_EQ(integer("-1"), -1);
  EXPECT_EQ(integer("1000"), 1000);
  EXPECT_EQ(integer("007"), 7);
}

TEST(Values, EverythingElseIsNoInteger) {
  for (const std::string text : {"", " 1", "1 ", "1.0", "1e3", "0x10", "+1", "abc", "10x", ".9", "--", "1001",
                                 "-2", "99999999999999999999", "nan", "1\n"}) {
    EXPECT_THROW(static_cast<void>(integer(text)), Error) << text;
  }
}

TEST(Values, MessageNamesOptionValueAndRange) {
  EXPECT_THAT([] { static_cast<void>(integer("10x")); },
              ThrowsMessage<Error>(AllOf(HasSubstr("-n"), HasSubstr("'10x'"), HasSubstr("from -1 to 1000"))));
  EXPECT_THAT(
      [] { static_cast<void>(real("1.5")); },
      ThrowsMessage<Error>(AllOf(HasSubstr("--top-p"), HasSubstr("'1.5'"), HasSubstr("from 0 to 1"))));
}

TEST(Values, MessageShowsControlCharactersEscapedAndLongValuesCut) {
  EXPECT_THAT([] { static_cast<void>(integer("\x1b[2J")); }, ThrowsMessage<Error>(HasSubstr("\\x1B[2J")));
  try {
    static_cast<void>(integer(std::string(100'000, 'a')));
    FAIL();
  } catch (const Error& error) {
    EXPECT_LT(std::string(error.what()).size(), 200U);
  }
}

TEST(Values, SeedsHave64Bits) {
  EXPECT_EQ(read_unsigned({"--seed", "18446744073709551615"}), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(read_unsigned({"--seed", "0"}), 0U);
  for (const std::string text : {"18446744073709551616", "-1", ".9", "1.5", ""}) {
    EXPECT_THROW(static_cast<void>(read_unsigned({"--seed", text})), Error) << text;
  }
}

TEST(Values, RealsAreRead) {
  EXPECT_EQ(real("0.1"), 0.1);
  EXPECT_EQ(real(".9"), 0.9);
  EXPECT_EQ(real("1"), 1);
  EXPECT_EQ(real("5e-1"), 0.5);
}

TEST(Values, EverythingElseIsNoReal) {
  for (const std::string text : {"", "nan", "inf", "-inf", "infinity", "1e999", "0,5", "0.5x", "0.5 ",
                                 "0x1p-1", "-0.1", "1.0000001", "--", "."}) {
    EXPECT_THROW(static_cast<void>(real(text)), Error) << text;
  }
  EXPECT_THROW(static_cast<void>(read_real({"--x", "inf"}, 0, std::numeric_limits<double>::infinity())),
               Error);
}

TEST(Values, ChoicesListTheWords) {
  constexpr std::array<std::string_view, 2> kWords{"stop", "slide"};
  EXPECT_EQ(read_choice({"--context-full", "slide"}, kWords), "slide");
  EXPECT_THAT(
      [&] {
        static_cast<void>(read_choice({"--context-full", "Slide"}, kWords));
      },
      ThrowsMessage<Error>(HasSubstr("one of stop, slide")));
}

TEST(Values, ListsHaveNoEmptyParts) {
  EXPECT_EQ(split_list({"--d", "1,2,3"}).size(), 3U);
  EXPECT_EQ(split_list({"--d", "1"}).front().value, "1");
  for (const std::string text : {"", ",", "1,", ",1", "1,,2"}) {
    EXPECT_THROW(split_list({"--d", text}), Error) << text;
  }
}

}  // namespace
}  // namespace qgen::cli
