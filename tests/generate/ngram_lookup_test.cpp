#include "generate/ngram_lookup.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string_view>

#include "qgen/base/stopwatch.h"

namespace qgen {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

std::vector<TokenId> letters(std::string_view text) {
  return {text.begin(), text.end()};
}

NgramLookup lookup_over(const std::vector<TokenId>& text) {
  NgramLookup lookup;
  for (const TokenId id : text) lookup.add(id);
  return lookup;
}

std::vector<TokenId> guess(const NgramLookup& lookup, std::size_t most) {
  std::vector<TokenId> result{-7};  // what it held before does not matter
  lookup.find(most, result);
  return result;
}

std::vector<TokenId> guess_after(std::string_view text, std::size_t most) {
  return guess(lookup_over(letters(text)), most);
}

TEST(NgramLookup, GuessesNothingWhereNothingRepeats) {
  EXPECT_THAT(guess_after("", 8), IsEmpty());
  EXPECT_THAT(guess_after("a", 8), IsEmpty());
  EXPECT_THAT(guess_after("ab", 8), IsEmpty());
  EXPECT_THAT(guess_after("abcdefgh", 8), IsEmpty());
  EXPECT_THAT(guess_after("xaya", 8), IsEmpty()) << "one token is too little";
}

TEST(NgramLookup, GuessesWhatFollowedTheLastTime) {
  EXPECT_EQ(guess_after("abcd abc", 8), letters("d a"));
  EXPECT_EQ(guess_after("abcx abcy abc", 1), letters("y")) << "the latest place of the same n-gram";
}

TEST(NgramLookup, LongerMatchesWinOverLaterOnes) {
  EXPECT_EQ(guess_after("1abcX 2bcY 1abc", 1), letters("X"));
}

TEST(NgramLookup, GuessesNoMoreThanAskedForNorThanMatched) {
  EXPECT_EQ(guess_after("abcdefghijk-abcdefg", 3), letters("hij"));
  EXPECT_EQ(guess_after("abcdefghijk-ab", 8), letters("cd"));
  EXPECT_THAT(guess_after("abcdefghijk-abc", 0), IsEmpty());
}

TEST(NgramLookup, MatchesLongerThanAnNgramAllowLongGuesses) {
  EXPECT_EQ(guess_after("abcdefghijklmnopqrstuvwxyz-abcdefghijkl", 12), letters("mnopqrstuvwx"));
}

TEST(NgramLookup, ContinuesTextsThatRepeatAFewTokensOverAndOver) {
  EXPECT_EQ(guess_after("aaaaaaaa", 5), letters("aaaaa"));
  EXPECT_EQ(guess_after("-abcabcabcabc", 8), letters("abcabcab"));
}

/// The latest place of the longest n-gram by looking at every place.
std::vector<TokenId> slow_guess(const std::vector<TokenId>& text, std::size_t most) {
  const auto matched = [&text](std::size_t end) {
    std::size_t n = 0;
    while (n < std::min<std::size_t>(16, end) && text[end - 1 - n] == text[text.size() - 1 - n]) ++n;
    return n;
  };
  std::size_t best = 0, best_n = NgramLookup::kShortest;
  for (std::size_t end = 1; end < text.size(); ++end) {
    const std::size_t n = std::min(matched(end), NgramLookup::kLongest);
    if (n >= best_n) best = end, best_n = n;
  }
  std::vector<TokenId> result;
  if (best == 0) return result;
  for (std::size_t i = 0; i < std::min(most, matched(best)); ++i) {
    result.push_back(best + i < text.size() ? text[best + i] : result[best + i - text.size()]);
  }
  return result;
}

/// Entries of the index may overwrite each other, so that a shorter match is found, but rarely.
TEST(NgramLookup, AgreesWithASearchOfTheWholeText) {
  std::mt19937 random(3);
  for (const std::uint32_t alphabet : {2U, 3U, 8U, 40U}) {
    std::vector<TokenId> text;
    NgramLookup lookup;
    int other = 0;
    for (int i = 0; i < 1000; ++i) {
      text.push_back(static_cast<TokenId>(random() % alphabet));
      lookup.add(text.back());
      other += guess(lookup, 10) == slow_guess(text, 10) ? 0 : 1;
    }
    EXPECT_LE(other, 60) << "alphabet " << alphabet;
  }
}

TEST(NgramLookup, FindsPlacesFarBack) {
  std::mt19937 random(4);
  std::vector<TokenId> text(30'000);
  for (TokenId& id : text) id = static_cast<TokenId>(random() % 150'000);
  NgramLookup lookup = lookup_over(text);
  int found = 0;
  for (std::size_t start = 0; start < 2000; start += 20) {
    for (std::size_t i = 0; i < 6; ++i) lookup.add(text[start + i]);
    found += guess(lookup, 1) == std::vector<TokenId>{text[start + 6]} ? 1 : 0;
  }
  EXPECT_GE(found, 95);
}

TEST(NgramLookup, TimeIsLinearAndMemoryBounded) {
  std::mt19937 random(5);
  // A text that repeats all the time, and one of long runs: where a search of the text would be quadratic.
  const auto seconds = [&random](std::size_t tokens, std::uint32_t alphabet) {
    std::vector<TokenId> out;
    const Stopwatch watch;
    NgramLookup lookup;
    for (std::size_t i = 0; i < tokens; ++i) {
      lookup.add(static_cast<TokenId>(random() % alphabet));
      lookup.find(8, out);
    }
    EXPECT_LE(lookup.bytes(), (std::size_t{4} << 20) + 8 * tokens);
    return watch.seconds();
  };
  for (const std::uint32_t alphabet : {1U, 30U, 100'000U}) {
    seconds(100'000, alphabet);  // warms up
    const double once = std::min(seconds(100'000, alphabet), seconds(100'000, alphabet));
    const double eight = std::min(seconds(800'000, alphabet), seconds(800'000, alphabet));
    EXPECT_LT(eight, 8 * once * 4) << "alphabet " << alphabet;
    EXPECT_LT(once, 1.0);
  }
}

}  // namespace
}  // namespace qgen
