// Time must grow about linearly. The bounds are wide: a quadratic step would miss them by far. Processor time
// is measured, so that a busy machine does not matter.

#include <algorithm>
#include <ctime>

#include "tokenizer/split.h"
#include "tokenizer/support.h"

namespace qgen {
namespace {

using testing::added_token;
using testing::load;
using testing::SmallTokenizer;
using testing::tales;

double processor_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

double seconds_to_encode(const Tokenizer& tokenizer, const std::string& text) {
  double best = 1e9;
  for (int i = 0; i < 3; ++i) {
    const double begin = processor_seconds();
    EXPECT_FALSE(tokenizer.encode(text).empty());
    best = std::min(best, processor_seconds() - begin);
  }
  return best;
}

std::string repeated(std::string_view unit, std::size_t bytes) {
  std::string text;
  while (text.size() < bytes) text += unit;
  return text;
}

void expect_linear_time(const Tokenizer& tokenizer, std::string_view unit) {
  const double half = seconds_to_encode(tokenizer, repeated(unit, 200'000));
  const double whole = seconds_to_encode(tokenizer, repeated(unit, 400'000));
  EXPECT_LT(whole, 3 * half + 0.02) << half << " s, then " << whole << " s";
}

class LongText : public ::testing::TestWithParam<const char*> {};

TEST_P(LongText, TwiceTheTextTakesAboutTwiceTheTime) {
  expect_linear_time(tales(), GetParam());
}

INSTANTIATE_TEST_SUITE_P(Units, LongText,
                         ::testing::Values("a", "\n", "\r\n", " ", " \n", "=", "1", "\U0001F600", "\u0301",
                                           "\u0301\u0323", "e\u0301", "\u1100\u1161", "\xFF", "<|im_end|>",
                                           "<", "A\u00aa", "The quick brown fox jumps over the lazy dog. "));

TEST(LongText, SpacesThatManyTokensWantToStripTakeLinearTime) {
  const SmallTokenizer tokenizer{.added = "[" + added_token(256, " ", {"lstrip", "rstrip"}) + "]"};
  expect_linear_time(load(tokenizer.json()), " ");
}

TEST(LongText, AHundredThousandBlankLinesComeBackWhole) {
  for (const std::string& text : {repeated("\n", 100'000), repeated("\r\n", 200'000)}) {
    EXPECT_EQ(tales().decode(tales().encode(text)), text);
  }
}

TEST(LongText, EveryRuleSplitsInLinearTime) {
  const auto seconds = [](SplitRule rule, const std::string& text) {
    const double begin = processor_seconds();
    for (std::size_t i = 0; i < text.size();) i = piece_end(rule, text, i);
    return processor_seconds() - begin;
  };
  for (const SplitRule rule : {SplitRule::gpt2, SplitRule::qwen2, SplitRule::llama3, SplitRule::tekken,
                               SplitRule::o200k, SplitRule::each_digit, SplitRule::runs_of_digits}) {
    for (const char* unit :
         {"A", "a", "\u00aa", "A\u00aa", "\u0301", "\u0301A", "!A", " ", " \n", "\n ", "1", "!/", "'s"}) {
      const double half = seconds(rule, repeated(unit, 200'000));
      const double whole = seconds(rule, repeated(unit, 400'000));
      EXPECT_LT(whole, 3 * half + 0.02) << unit << ": " << half << " s, then " << whole << " s";
    }
  }
}

}  // namespace
}  // namespace qgen
