// The golden file "added" compares many mixtures of flags; here are the cases that have a name.

#include "tokenizer/support.h"

namespace qgen {
namespace {

using testing::added_token;
using testing::load;
using testing::SmallTokenizer;
using testing::tales;
using Ids = std::vector<TokenId>;

constexpr EncodeOptions kSpecial{.parse_special = true};

TEST(AddedTokens, TheLongestTokenAtTheLeftmostPlaceWins) {
  const SmallTokenizer tokenizer{.added = "[" + added_token(256, "\U00030001") + ", " +
                                          added_token(257, "\U00030002") + ", " +
                                          added_token(258, "\U00030002\U00030001") + "]"};
  EXPECT_EQ(load(tokenizer.json()).encode("\U00030001\U00030002\U00030001"), (Ids{256, 258}));
}

TEST(AddedTokens, ControlTokensAreRecognisedOnlyOnRequest) {
  const std::string text = "<|im_start|>system";
  const Ids ids = tales().encode(text, kSpecial);
  EXPECT_EQ(ids.front(), 4094);
  EXPECT_EQ(tales().encode("system"), Ids(ids.begin() + 1, ids.end()));
  const Ids plain = tales().encode("<|im_end|>");
  EXPECT_GT(plain.size(), 1U);
  for (const TokenId id : plain) EXPECT_FALSE(tales().is_special(id));
  EXPECT_EQ(tales().decode(plain), "<|im_end|>");
}

TEST(AddedTokens, TextThatQuotesAControlTokenIsOrdinaryText) {
  const std::string text = "the marker is <|endoftext|> here";
  const Ids plain = tales().encode(text);
  EXPECT_EQ(std::count(plain.begin(), plain.end(), 4093), 0);
  EXPECT_EQ(tales().decode(plain), text);
  const Ids control = tales().encode(text, kSpecial);
  EXPECT_EQ(std::count(control.begin(), control.end(), 4093), 1);
  EXPECT_EQ(tales().decode(control), text);
  EXPECT_EQ(tales().decode(control, true), "the marker is  here");
}

TEST(AddedTokens, TokensThatAreNotSpecialAreAlwaysRecognisedAndNeverSkipped) {
  const SmallTokenizer tokenizer{.added = "[" + added_token(256, "<think>") + "]"};
  const Tokenizer loaded = load(tokenizer.json());
  EXPECT_EQ(loaded.encode("<think>a"), (Ids{256, 'a'}));
  EXPECT_EQ(loaded.decode(Ids{256, 'a'}, true), "<think>a");
  EXPECT_FALSE(loaded.is_special(256));
}

TEST(AddedTokens, TokensThatAreNotNormalisedAreMatchedInTheRawText) {
  const SmallTokenizer tokenizer{.added = "[" + added_token(256, "e\u0301") + "]",
                                 .normalizer = R"({"type": "NFC"})"};
  const Tokenizer loaded = load(tokenizer.json());
  EXPECT_EQ(loaded.encode("e\u0301"), (Ids{256}));
  EXPECT_EQ(loaded.encode("\u00e9"), (Ids{0xC3, 0xA9}));
  EXPECT_EQ(loaded.encode("a\u0301"), loaded.encode("\u00e1"));
}

TEST(AddedTokens, NormalisationStopsAtAToken) {
  const SmallTokenizer tokenizer{.added = "[" + added_token(256, "e") + "]",
                                 .normalizer = R"({"type": "NFC"})"};
  EXPECT_EQ(load(tokenizer.json()).encode("e\u0301"), (Ids{'e', 0xCC, 0x81}));
}

TEST(AddedTokens, IdsFollowTheVocabularyWhateverTheFileSays) {
  const SmallTokenizer tokenizer{.pieces = {"ab"},
                                 .added = "[" + added_token(300, "<x>") + ", " + added_token(310, "<y>") +
                                          ", " + added_token(7, "ab") + "]"};
  const Tokenizer loaded = load(tokenizer.json());
  EXPECT_EQ(loaded.encode("<x><y>ab"), (Ids{257, 258, 256}));
  EXPECT_EQ(loaded.size(), 259);
  EXPECT_EQ(loaded.find("<y>"), 258);
}

TEST(AddedTokens, TokensMayOverlapWhatRstripTook) {
  const SmallTokenizer tokenizer{.added = "[" + added_token(256, "<x>", {"rstrip"}) + ", " +
                                          added_token(257, "  ") + ", " +
                                          added_token(258, "<y>", {"lstrip"}) + "]"};
  const Tokenizer loaded = load(tokenizer.json());
  EXPECT_EQ(loaded.encode("<x>     <y>"), (Ids{256, 257, 257, 258}));
  EXPECT_EQ(loaded.encode("<x>   a"), (Ids{256, 257, ' ', 'a'}));
}

TEST(AddedTokens, AnUnmatchedSpecialTokenHidesTheTokensInIt) {
  const SmallTokenizer tokenizer{.added = "[" + added_token(256, "<|a|>", {"special"}) + ", " +
                                          added_token(257, "|a|") + "]"};
  const Tokenizer loaded = load(tokenizer.json());
  EXPECT_EQ(loaded.encode("<|a|>", kSpecial), (Ids{256}));
  EXPECT_EQ(loaded.encode("<|a|>"), (Ids{'<', '|', 'a', '|', '>'}));
  EXPECT_EQ(loaded.encode("|a|"), (Ids{257}));
}

}  // namespace
}  // namespace qgen
