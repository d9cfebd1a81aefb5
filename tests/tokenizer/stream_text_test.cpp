#include "qgen/tokenizer/stream_text.h"

#include "tokenizer/support.h"

namespace qgen {
namespace {

TEST(StreamText, CharactersThatSpanTokensComeOutWhole) {
  StreamText stream;
  EXPECT_EQ(stream.push("A. \xE5\x8D"), "A. ");
  EXPECT_EQ(stream.push("\x95"), "\xE5\x8D\x95");
  EXPECT_EQ(stream.push("\xE5\x8F\x91"), "\xE5\x8F\x91");
  EXPECT_EQ(stream.flush(), "");
}

TEST(StreamText, EmojiByteByByteComesOutAtItsLastByte) {
  StreamText stream;
  EXPECT_EQ(stream.push("\xF0"), "");
  EXPECT_EQ(stream.push("\x9F"), "");
  EXPECT_EQ(stream.push("\x98"), "");
  EXPECT_EQ(stream.push("\x8A"), "\xF0\x9F\x98\x8A");
}

TEST(StreamText, BytesThatCannotBecomeACharacterPassAtOnce) {
  StreamText stream;
  EXPECT_EQ(stream.push("\x80\xFF"), "\x80\xFF");
  EXPECT_EQ(stream.push("\xC3"), "");
  EXPECT_EQ(stream.push("\\"), "\xC3\\");
  EXPECT_EQ(stream.push("\xE0\x80"), "\xE0\x80");
  EXPECT_EQ(stream.push("\xED\xA0"), "\xED\xA0");
  EXPECT_EQ(stream.push("\xF0\x9F\x98"), "");
  EXPECT_EQ(stream.push("\xF0"), "\xF0\x9F\x98");
}

TEST(StreamText, TheEndGivesWhatIsLeftAndStartsAnew) {
  StreamText stream;
  EXPECT_EQ(stream.push("x\xE6\xAD"), "x");
  EXPECT_EQ(stream.flush(), "\xE6\xAD");
  EXPECT_EQ(stream.push("\xAA"), "\xAA");
  EXPECT_EQ(stream.flush(), "");
}

TEST(StreamText, AnyCuttingGivesTheSameBytes) {
  const std::string text = "a\u00e9\u65e5\U0001F60A\xC3(\xE2\x82 \xF0\x9F\x98z\xFF\u0301";
  for (std::size_t step = 1; step <= text.size(); ++step) {
    StreamText stream;
    std::string out;
    for (std::size_t i = 0; i < text.size(); i += step) {
      out += stream.push(std::string_view(text).substr(i, step));
      EXPECT_LE(std::min(i + step, text.size()) - out.size(), 3U);
    }
    EXPECT_EQ(out + stream.flush(), text);
  }
}

}  // namespace
}  // namespace qgen
