#include "cli/options/arguments.h"

#include <gmock/gmock.h>

#include "qgen/base/error.h"

namespace qgen::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

const std::vector<OptionSpelling> kOptions{
    {"--prompt", "--prompt", true}, {"-p", "--prompt", true},
    {"--top-p", "--top-p", true},   {"--verbose", "--verbose", false},
    {"-v", "--verbose", false},     {"--quiet", "--quiet", false},
    {"-q", "--quiet", false},       {"--system", "--system", true},
    {"-sys", "--system", true},     {"-s", "--seed", true},
    {"--seed", "--seed", true},
};

std::vector<std::string> read(const std::vector<std::string>& arguments) {
  std::vector<std::string> shown;
  for (const Argument& argument : read_arguments(arguments, kOptions)) {
    shown.push_back(argument.canonical + "|" + argument.typed + "|" + argument.value);
  }
  return shown;
}

TEST(Arguments, DashAndUnderscoreAreEqualInLongOptions) {
  EXPECT_THAT(read({"--top_p", "1", "--top-p", "2"}), ElementsAre("--top-p|--top_p|1", "--top-p|--top-p|2"));
}

TEST(Arguments, UnderscoresOfValuesStay) {
  EXPECT_THAT(read({"--prompt", "--top_p", "--prompt=a_b=c"}),
              ElementsAre("--prompt|--prompt|--top_p", "--prompt|--prompt|a_b=c"));
}

TEST(Arguments, ValueMayBeginWithADash) {
  EXPECT_THAT(read({"-p", "-5 degrees", "--seed", "-1", "-p", "--", "-p", "-"}),
              ElementsAre("--prompt|-p|-5 degrees", "--seed|--seed|-1", "--prompt|-p|--", "--prompt|-p|-"));
}

TEST(Arguments, EmptyValuesAreValues) {
  EXPECT_THAT(read({"--prompt=", "-p", "", ""}), ElementsAre("--prompt|--prompt|", "--prompt|-p|", "||"));
}

TEST(Arguments, ShortOptionsJoinWithValuesAndEachOther) {
  EXPECT_THAT(read({"-s7", "-vq", "-vqs", "8"}), ElementsAre("--seed|-s|7", "--verbose|-v|", "--quiet|-q|",
                                                             "--verbose|-v|", "--quiet|-q|", "--seed|-s|8"));
}

TEST(Arguments, SysIsAWordAndNotTheSeed) {
  EXPECT_THAT(read({"-sys", "be brief"}), ElementsAre("--system|-sys|be brief"));
}

TEST(Arguments, TextsStandAnywhereAndDoubleDashEndsOptions) {
  EXPECT_THAT(read({"one", "-v", "-", "--", "--prompt", "--"}),
              ElementsAre("||one", "--verbose|-v|", "||-", "||--prompt", "||--"));
}

TEST(Arguments, UnknownOptionNamesTheNearest) {
  EXPECT_THAT(
      [] {
        read({"--top_k_", "3"});
      },
      ThrowsMessage<Error>(HasSubstr("unknown option --top_k_; the nearest known one is --top-p")));
  EXPECT_THAT([] { read({"--promt=x"}); }, ThrowsMessage<Error>(HasSubstr("--prompt")));
  EXPECT_THAT([] { read({"-x"}); }, ThrowsMessage<Error>(HasSubstr("unknown option -x")));
}

TEST(Arguments, TextThatLooksLikeAnOptionGetsAHint) {
  EXPECT_THAT([] { read({"-5 degrees"}); }, ThrowsMessage<Error>(HasSubstr("write -- before")));
}

TEST(Arguments, MissingAndSuperfluousValuesAreErrors) {
  EXPECT_THAT([] { read({"--seed"}); }, ThrowsMessage<Error>(HasSubstr("--seed needs a value")));
  EXPECT_THAT([] { read({"-v", "-s"}); }, ThrowsMessage<Error>(HasSubstr("-s needs a value")));
  EXPECT_THAT([] { read({"--verbose=yes"}); }, ThrowsMessage<Error>(HasSubstr("--verbose takes no value")));
}

TEST(Arguments, NearestOfNothingIsEmpty) {
  EXPECT_EQ(nearest_spelling("--x", {}), "");
}

TEST(Arguments, NearestOfAHugeWordIsFoundAtOnce) {
  EXPECT_FALSE(nearest_spelling("--" + std::string(10'000'000, 'a'), kOptions).empty());
}

}  // namespace
}  // namespace qgen::cli
