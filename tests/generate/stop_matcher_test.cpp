#include "generate/stop_matcher.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

namespace qgen {
namespace {

struct Outcome {
  std::string text;
  bool matched = false;
  std::string held;  // what flush() brings at the end
  friend bool operator==(const Outcome&, const Outcome&) = default;
};

Outcome feed(const std::vector<std::string>& stop, const std::vector<std::string>& pieces) {
  StopMatcher matcher(stop);
  Outcome out;
  for (const std::string& piece : pieces) {
    const StopMatcher::Step step = matcher.push(piece);
    out.text += step.text;
    out.matched = step.matched;
    if (step.matched) break;
  }
  out.held = matcher.flush();
  return out;
}

TEST(StopMatcher, PassesEverythingWithoutStrings) {
  EXPECT_EQ(feed({}, {"ab", "", "c"}), (Outcome{"abc", false, ""}));
  EXPECT_EQ(feed({""}, {"ab", std::string("\0\0c", 3)}), (Outcome{std::string("ab\0\0c", 5), false, ""}));
}

TEST(StopMatcher, CutsBeforeAStringWithinOnePieceAndAcrossPieces) {
  EXPECT_EQ(feed({"stop"}, {"go stop go"}), (Outcome{"go ", true, ""}));
  EXPECT_EQ(feed({"stop"}, {"go s", "t", "", "op", "x"}), (Outcome{"go ", true, ""}));
  EXPECT_EQ(feed({"stop"}, {"stop"}), (Outcome{"", true, ""}));
}

TEST(StopMatcher, HoldsBackOnlyWhatMayStillBecomeAString) {
  StopMatcher matcher({"aab"});
  EXPECT_EQ(matcher.push("xa").text, "x");
  EXPECT_EQ(matcher.push("a").text, "");
  EXPECT_EQ(matcher.push("a").text, "a");
  EXPECT_EQ(matcher.push("c").text, "aac");
  EXPECT_EQ(matcher.push("aa").text, "");
  EXPECT_EQ(matcher.flush(), "aa");
}

TEST(StopMatcher, TheFirstCompleteStringWinsAndOfThoseTheLongest) {
  EXPECT_EQ(feed({"abcd", "bc"}, {"xabcd"}), (Outcome{"xa", true, ""}));
  EXPECT_EQ(feed({"bc", "abc"}, {"xab", "cd"}), (Outcome{"x", true, ""}));
  EXPECT_EQ(feed({"ab", "abc"}, {"xabc"}), (Outcome{"x", true, ""}));
  EXPECT_EQ(feed({"later", "now"}, {"now later"}), (Outcome{"", true, ""}));
}

TEST(StopMatcher, MatchesBytesOfCharactersCutAnywhere) {
  EXPECT_EQ(feed({"\xE5\x8D\x95"}, {"A\xE5", "\x8D", "\x95\xE5"}), (Outcome{"A", true, ""}));
  EXPECT_EQ(feed({std::string("\0x", 2)}, {std::string("a\0", 2), "x"}), (Outcome{"a", true, ""}));
}

/// Every end of a string in `text`, byte by byte: slow and obvious.
Outcome search(const std::vector<std::string>& stop, const std::string& text) {
  for (std::size_t end = 1; end <= text.size(); ++end) {
    std::size_t longest = 0;
    for (const std::string& s : stop) {
      if (s.size() <= end && text.compare(end - s.size(), s.size(), s) == 0)
        longest = std::max(longest, s.size());
    }
    if (longest > 0) return {text.substr(0, end - longest), true, ""};
  }
  for (std::size_t n = text.size(); n > 0; --n) {
    for (const std::string& s : stop) {
      if (n < s.size() && text.ends_with(s.substr(0, n))) {
        return {text.substr(0, text.size() - n), false, text.substr(text.size() - n)};
      }
    }
  }
  return {text, false, ""};
}

TEST(StopMatcher, AgreesWithAPlainSearchHoweverTheTextIsCut) {
  std::mt19937 random(5);
  const auto some = [&](std::size_t most) {
    return std::uniform_int_distribution<std::size_t>(0, most)(random);
  };
  const auto word = [&](std::size_t least, std::size_t most) {
    std::string out(least + some(most - least), 'a');
    for (char& c : out) c = static_cast<char>('a' + some(1));
    return out;
  };
  for (int round = 0; round < 20000; ++round) {
    std::vector<std::string> stop(some(3));
    std::generate(stop.begin(), stop.end(), [&] { return word(1, 6); });
    const std::string text = word(0, 16);
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < text.size(); at += pieces.back().size()) {
      pieces.push_back(text.substr(at, 1 + some(4)));
    }
    ASSERT_EQ(feed(stop, pieces), search(stop, text)) << text;
  }
}

}  // namespace
}  // namespace qgen
