#include "cli/run/prompt.h"

#include <gmock/gmock.h>

namespace qgen::cli {
namespace {

using namespace std::string_literals;

TEST(Unescape, KnownEscapesAreReplaced) {
  EXPECT_EQ(unescape(R"(a\nb\tc\r\0\\\"\')"), "a\nb\tc\r\0\\\"'"s);
  EXPECT_EQ(unescape(R"(\x41\xff\u00e9\u4e2d)"), "A\xff\xc3\xa9\xe4\xb8\xad");
  EXPECT_EQ(unescape(R"(\e\a\b\f\v)"), "\x1b\a\b\f\v");
}

TEST(Unescape, UnknownAndIncompleteEscapesStay) {
  for (const std::string text :
       {R"(\q)", R"(\)", R"(a\)", R"(\x4)", R"(\xg1)", R"(\u12)", R"(\ud800)", R"(\x-1)"}) {
    EXPECT_EQ(unescape(text), text);
  }
}

TEST(Unescape, BackslashPairsDoNotMakeNewEscapes) {
  EXPECT_EQ(unescape(R"(\\n)"), "\\n");
}

}  // namespace
}  // namespace qgen::cli
