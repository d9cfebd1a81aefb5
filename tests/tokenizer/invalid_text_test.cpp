#include "tokenizer/support.h"

namespace qgen {
namespace {

using testing::load;
using testing::pieces_of;
using testing::SmallTokenizer;
using testing::tales;
using Ids = std::vector<TokenId>;

TEST(InvalidText, EveryByteSequenceSurvives) {
  for (const std::string& text :
       {std::string("\xFF\xFE\x41"), std::string("\xC0\x80"), std::string("\xED\xA0\x80"),
        std::string("\xE6\xAD"), std::string("\xF4\x90\x80\x80"), std::string("a\0b\0", 4),
        std::string("\x80\x80 \xBF\n\xFFx1"), std::string("caf\xC3"), std::string("\xE6\xAD\xE6\xAD\xAA")}) {
    EXPECT_EQ(tales().decode(tales().encode(text)), text);
  }
}

TEST(InvalidText, EachByteIsATokenAndValidTextKeepsItsOwn) {
  const SmallTokenizer tokenizer{.normalizer = R"({"type": "NFC"})"};
  const Tokenizer loaded = load(tokenizer.json());
  EXPECT_EQ(loaded.encode("\xFF\xFE\x41"), (Ids{0xFF, 0xFE, 'A'}));
  EXPECT_EQ(loaded.encode("\xC0\x80"), (Ids{0xC0, 0x80}));
  EXPECT_EQ(loaded.encode("\xED\xA0\x80"), (Ids{0xED, 0xA0, 0x80}));
}

TEST(InvalidText, StrayBytesSplitLikeSymbols) {
  // A symbol takes one letter run along, stays with other symbols and ends a run of letters or digits.
  SmallTokenizer tokenizer{.pieces = {"ab", "\u0143\u0143", "cd"}, .merges = R"(["a b", "Ń Ń", "c d"])"};
  const Tokenizer loaded = load(tokenizer.json());
  ASSERT_EQ(pieces_of(loaded, {257}), (std::vector<std::string>{"\xAD\xAD"}));
  EXPECT_EQ(loaded.encode("ab\xAD\xAD"
                          "cd"),
            (Ids{256, 257, 258}));
}

TEST(InvalidText, NormalisationGoesOnAroundStrayBytes) {
  EXPECT_EQ(tales().decode(tales().encode("e\u0301\xFF"
                                          "e\u0301")),
            "\u00e9\xFF\u00e9");
}

TEST(InvalidText, RandomBytesNeverFailAndAlwaysSurvive) {
  std::uint64_t state = 1;
  const SmallTokenizer raw;
  const Tokenizer loaded = load(raw.json());
  for (int round = 0; round < 2000; ++round) {
    std::string text;
    for (int i = 0; i < round % 40; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      text += static_cast<char>(static_cast<unsigned char>(state >> 56));
    }
    EXPECT_EQ(loaded.decode(loaded.encode(text)), text);
    EXPECT_NO_THROW(static_cast<void>(tales().encode(text)));
  }
}

}  // namespace
}  // namespace qgen
