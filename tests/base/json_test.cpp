#include "qgen/base/json.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <clocale>
#include <limits>
#include <string>
#include <string_view>

#include "qgen/base/error.h"

namespace qgen {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;
using ::testing::StartsWith;

Json parse(std::string_view text) {
  return parse_json(text, "test.json");
}

/// The message with which `text` is refused; it must be an Error{file} naming the source.
std::string refusal(std::string_view text, const JsonLimits& limits = {}) {
  try {
    parse_json(text, "test.json", limits);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::file);
    EXPECT_THAT(error.what(), StartsWith("test.json: "));
    return error.what();
  }
  ADD_FAILURE() << "accepted: " << text.substr(0, 100);
  return {};
}

std::string repeat(std::string_view text, std::size_t times) {
  std::string out;
  out.reserve(text.size() * times);
  for (std::size_t i = 0; i < times; ++i) out += text;
  return out;
}

TEST(Json, ReadsEveryTypeAndNamesIt) {
  const Json json = parse(R"( {"n":null,"b":true,"i":-3,"d":1.5,"s":"x","a":[1,[]],"o":{"k":{}}} )");
  EXPECT_TRUE(json.find("n")->is_null());
  EXPECT_EQ(json.find("b")->as_bool(), true);
  EXPECT_EQ(json.find("i")->as_int(), -3);
  EXPECT_EQ(json.find("d")->as_double(), 1.5);
  EXPECT_EQ(*json.find("s")->as_string(), "x");
  EXPECT_EQ(json.find("a")->as_array()->size(), 2U);
  EXPECT_NE(json.find("o")->find("k")->as_object(), nullptr);
  std::string types;
  for (const auto& [name, value] : *json.as_object())
    types += name + "=" + std::string(value.type_name()) + " ";
  EXPECT_EQ(types, "n=null b=boolean i=integer d=number s=string a=array o=object ");
}

TEST(Json, GettersCoerceNothingButIntegersToDoubles) {
  const Json integer = parse("7");
  EXPECT_EQ(integer.as_double(), 7.0);
  EXPECT_EQ(integer.as_bool(), std::nullopt);
  EXPECT_EQ(integer.as_string(), nullptr);
  EXPECT_EQ(integer.as_array(), nullptr);
  EXPECT_EQ(integer.as_object(), nullptr);
  EXPECT_EQ(parse("7.0").as_int(), std::nullopt);
  EXPECT_EQ(parse("\"7\"").as_int(), std::nullopt);
  EXPECT_EQ(parse("true").as_int(), std::nullopt);
  EXPECT_EQ(parse("null").as_double(), std::nullopt);
}

TEST(Json, FindLooksInObjectsOnly) {
  const Json json = parse(R"({"a":1,"":2})");
  EXPECT_EQ(json.find("a")->as_int(), 1);
  EXPECT_EQ(json.find("")->as_int(), 2);
  EXPECT_EQ(json.find("b"), nullptr);
  EXPECT_EQ(parse("[1]").find("a"), nullptr);
  EXPECT_EQ(parse("null").find("a"), nullptr);
}

TEST(Json, MembersKeepTheOrderOfTheText) {
  std::string names;
  const Json json = parse(R"({"z":1,"a":2,"m":3})");
  for (const auto& [name, value] : *json.as_object()) names += name;
  EXPECT_EQ(names, "zam");
}

TEST(Json, IntegersOutOfRangeAreNeverWrapped) {
  EXPECT_EQ(parse("9223372036854775807").as_int(), std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(parse("-9223372036854775808").as_int(), std::numeric_limits<std::int64_t>::min());
  for (const char* text : {"9223372036854775808", "18446744073709551615", "18446744073709551616",
                           "-9223372036854775809", "1000000000000000000000000"}) {
    EXPECT_EQ(parse(text).as_int(), std::nullopt) << text;
    EXPECT_DOUBLE_EQ(*parse(text).as_double(), std::stod(text)) << text;
  }
}

TEST(Json, NumbersAreReadExactly) {
  EXPECT_EQ(parse("1e-06").as_double(), 1e-06);
  EXPECT_EQ(parse("1000000.0").as_double(), 1000000.0);
  EXPECT_EQ(parse("0.1").as_double(), 0.1);
  EXPECT_EQ(parse("-0.0").as_double(), 0.0);
  EXPECT_EQ(parse("1.7976931348623157e308").as_double(), std::numeric_limits<double>::max());
  EXPECT_EQ(parse("5e-324").as_double(), std::numeric_limits<double>::denorm_min());
  EXPECT_EQ(parse("1e-400").as_double(), 0.0);
}

TEST(Json, NumbersBeyondDoubleAndFalseSpellingsAreRefused) {
  for (const char* text : {"1e400", "-1e400", "1e999999999999", "NaN", "Infinity", "-Infinity", "nan", "01",
                           "+1", "1.", ".5", "1e", "0x10", "--1", "-", "1_000"}) {
    refusal(text);
    refusal("[" + std::string(text) + "]");
  }
}

class CommaLocale : public ::testing::TestWithParam<const char*> {
 protected:
  void TearDown() override { std::setlocale(LC_ALL, "C"); }
};

TEST_P(CommaLocale, DoesNotChangeNumbers) {
  if (std::setlocale(LC_ALL, GetParam()) == nullptr) GTEST_SKIP() << GetParam() << " is not installed";
  ASSERT_STREQ(std::localeconv()->decimal_point, ",");
  EXPECT_EQ(parse("0.1").as_double(), 0.1);
  EXPECT_EQ(parse("1e-06").as_double(), 1e-06);
  EXPECT_EQ(parse("[1000000.5]").as_array()->front().as_double(), 1000000.5);
  refusal("0,1");
}

INSTANTIATE_TEST_SUITE_P(Json, CommaLocale, ::testing::Values("de_DE.UTF-8", "nb_NO.UTF-8"),
                         [](const auto& locale) { return std::string(locale.param).substr(0, 5); });

TEST(Json, DeepNestingIsRefusedWithoutRecursion) {
  EXPECT_THAT(refusal(repeat("[", 10'000'000)), HasSubstr("nested deeper than 128 levels"));
  EXPECT_THAT(refusal(repeat("{\"a\":", 1'000'000)), HasSubstr("nested deeper than 128 levels"));
  EXPECT_THAT(refusal(repeat("[{\"a\":", 1'000'000)), HasSubstr("nested deeper than 128 levels"));
}

TEST(Json, TheDepthLimitIsExact) {
  EXPECT_NO_THROW(parse(repeat("[", 128) + repeat("]", 128)));
  refusal(repeat("[", 129) + repeat("]", 129));
  EXPECT_NO_THROW(parse_json("[[1]]", "test.json", {.max_depth = 2}));
  EXPECT_THAT(refusal("[[[1]]]", {.max_depth = 2}), HasSubstr("nested deeper than 2 levels"));
  EXPECT_NO_THROW(parse("[" + repeat("[],", 100'000) + "[]]")) << "many siblings are not deep";
}

TEST(Json, ANameTwiceInOneObjectIsRefusedByName) {
  EXPECT_THAT(refusal(R"({"weight":1,"x":2,"weight":3})"), HasSubstr("\"weight\" occurs twice"));
  EXPECT_THAT(refusal(R"({"a":1,"\u0061":2})"), HasSubstr("\"a\" occurs twice"));
  EXPECT_THAT(refusal(R"([{"o":{"k":1,"k":1}}])"), HasSubstr("\"k\" occurs twice"));
  EXPECT_THAT(refusal(R"({"\u001b[2J":1,"\u001b[2J":1})"), HasSubstr("\\x1B[2J"));
  EXPECT_NO_THROW(parse(R"({"a":{"a":1},"b":{"a":1}})")) << "the same name in different objects";
}

TEST(Json, ANameTwiceIsFoundAmongVeryMany) {
  const auto object = [](int members, const std::string& last) {
    std::string text = "{";
    for (int i = 0; i < members; ++i) text += "\"n" + std::to_string(i) + "\":" + std::to_string(i) + ",";
    return text + "\"" + last + "\":-1}";
  };
  constexpr int kMembers = 50'000;
  const Json json = parse(object(kMembers, "last"));
  const JsonObject& members = *json.as_object();
  ASSERT_EQ(members.size(), kMembers + 1u);
  for (int i = 0; i < kMembers; ++i) {
    const auto at = static_cast<std::size_t>(i);
    ASSERT_EQ(members[at].first, "n" + std::to_string(i));
    ASSERT_EQ(members[at].second.as_int(), i);
  }
  for (const char* twice : {"n0", "n31415", "n49999"}) {
    EXPECT_THAT(refusal(object(kMembers, twice)), HasSubstr("\"" + std::string(twice) + "\" occurs twice"));
  }
}

TEST(Json, StringsAreDecoded) {
  EXPECT_EQ(*parse(R"("\"\\\/\b\f\n\r\t\u00e9\u0000\ud83d\ude0a")").as_string(),
            "\"\\/\b\f\n\r\t\xC3\xA9\0\xF0\x9F\x98\x8A"s);
  EXPECT_EQ(*parse("\"\xE5\x8D\x95\"").as_string(), "\xE5\x8D\x95");
}

TEST(Json, BrokenStringsAreRefused) {
  refusal(R"("\ud83d")");
  refusal(R"("\ude0a")");
  refusal(R"("\ud83dx")");
  refusal(R"("\ud83d\u0041")");
  refusal(R"("\x41")");
  refusal(R"("\u12g4")");
  refusal("\"open");
  refusal("\"line\nbreak\"");
  for (const char* bytes : {"\xFF", "\xC0\x80", "\xED\xA0\x80", "\xE5\x8D", "\xF4\x90\x80\x80", "\x80"}) {
    refusal("\"" + std::string(bytes) + "\"");
  }
}

TEST(Json, NulBytesAreNoEndOfText) {
  refusal("1\0"s);
  refusal("{}\0{}"s);
  refusal("\0{}"s);
  refusal("[1,\0 2]"s);
  refusal("\"a\0b\""s);
}

TEST(Json, OnlyOneWholeTextIsAccepted) {
  for (const char* text :
       {"", " ", "{", "[1,]", "[1 2]", "{\"a\"}", "{\"a\":}", "{a:1}", "{} {}", "{}x", "1 2", "nul", "tru",
        "'a'", "[1]]", "// c\n1", "/* c */ 1", "\xEF\xBB", "{\"a\":1,}"}) {
    refusal(text);
  }
  EXPECT_NO_THROW(parse(" \t\r\n{} \t\r\n"));
}

TEST(Json, AByteOrderMarkIsSkipped) {
  EXPECT_EQ(parse("\xEF\xBB\xBF[1]").as_array()->size(), 1U);
  refusal("\xEF\xBB\xBF\xEF\xBB\xBF[1]");
}

TEST(Json, MessagesNameSourceAndPlace) {
  EXPECT_THAT(refusal("[1, x]"), HasSubstr("malformed JSON at byte 5"));
  try {
    parse_json("[", "a\x1b[2Jb", {});
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), StartsWith("a\\x1B[2Jb: "));
  }
}

TEST(Json, EveryPrefixOfAValidTextIsRefused) {
  const std::string text = R"({"a":[1,-2.5e3,"x\u00e9\n",{"b":null}],"c":true})";
  EXPECT_NO_THROW(parse(text));
  for (std::size_t n = 0; n < text.size(); ++n) refusal(std::string_view(text).substr(0, n));
}

}  // namespace
}  // namespace qgen
