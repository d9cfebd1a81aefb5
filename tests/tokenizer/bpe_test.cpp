#include "tokenizer/support.h"

namespace qgen {
namespace {

using testing::expect_error;
using testing::load;
using testing::SmallTokenizer;
using Ids = std::vector<TokenId>;

TEST(Bpe, MergesAsStringsAndAsPairsGiveTheSameIds) {
  SmallTokenizer strings{.pieces = {"ab", "abc"}, .merges = R"(["a b", "ab c"])"};
  SmallTokenizer pairs{.pieces = {"ab", "abc"}, .merges = R"([["a", "b"], ["ab", "c"]])"};
  EXPECT_EQ(load(strings.json()).encode("abcab"), (Ids{257, 256}));
  EXPECT_EQ(load(pairs.json()).encode("abcab"), (Ids{257, 256}));
}

TEST(Bpe, PiecesOfHashSignsAreNoComments) {
  const SmallTokenizer tokenizer{.pieces = {"##", "###"}, .merges = R"(["#version: 0.2", "# #", "## #"])"};
  EXPECT_EQ(load(tokenizer.json()).encode("###"), (Ids{257}));
}

TEST(Bpe, LowestRankMergesFirstAndOfEqualsTheLeftmost) {
  const SmallTokenizer tokenizer{.pieces = {"bc", "ab", "aa"}, .merges = R"(["b c", "a b", "a a"])"};
  EXPECT_EQ(load(tokenizer.json()).encode("abc"), (Ids{'a', 256}));
  EXPECT_EQ(load(tokenizer.json()).encode("aaaaa"), (Ids{258, 258, 'a'}));
}

TEST(Bpe, OfAPairListedTwiceTheLaterRankCounts) {
  const SmallTokenizer tokenizer{.pieces = {"ab", "bc"}, .merges = R"(["a b", "b c", "a b"])"};
  EXPECT_EQ(load(tokenizer.json()).encode("abc"), (Ids{'a', 257}));
}

TEST(Bpe, IgnoreMergesTakesWholePiecesOfTheVocabulary) {
  SmallTokenizer tokenizer{.pieces = {"ab", "\u0120xyz"}, .merges = R"(["a b"])"};
  EXPECT_EQ(load(tokenizer.json()).encode("ab xyz"), (Ids{256, ' ', 'x', 'y', 'z'}));
  tokenizer.model_fields = R"("ignore_merges": true, )";
  EXPECT_EQ(load(tokenizer.json()).encode("ab xyz"), (Ids{256, 257}));
}

TEST(Bpe, MergesThatNameUnknownPiecesAreRefusedByName) {
  for (const std::string merges :
       {R"(["a b", "a zz"])", R"(["a b", "zz a"])", R"([["a", "b"], ["ab", "zz"]])"}) {
    const SmallTokenizer tokenizer{.pieces = {"ab", "azz"}, .merges = merges};
    expect_error(ErrorKind::file, {"merge 1", "\"zz\"", "tokenizer.json"}, [&] { load(tokenizer.json()); });
  }
  const SmallTokenizer result{.pieces = {}, .merges = R"(["a b"])"};
  expect_error(ErrorKind::file, {"merge 0", "\"ab\""}, [&] { load(result.json()); });
}

TEST(Bpe, MalformedMergesAreRefused) {
  for (const std::string merges : {R"(["ab"])", R"(["a b c"])", R"([["a"]])", R"(["a b", ["a", "b"]])",
                                   R"([["a", "b"], "a b"])", R"([1])", R"([["a", 1]])", R"({})", "null"}) {
    const SmallTokenizer tokenizer{.pieces = {"ab"}, .merges = merges};
    expect_error(ErrorKind::file, {"model.merges"}, [&] { load(tokenizer.json()); });
  }
}

TEST(Bpe, ControlBytesInFileStringsDoNotReachTheMessage) {
  const SmallTokenizer tokenizer{.pieces = {}, .merges = R"(["\u001b[2J a"])"};
  expect_error(ErrorKind::file, {"\\x1B[2J"}, [&] { load(tokenizer.json()); });
}

TEST(Bpe, IdsOutOfRangeAreRefused) {
  for (const std::string id : {"2147483648", "-1", "1.5", "\"7\"", "null", "18446744073709551615"}) {
    const SmallTokenizer tokenizer{.more_vocab = ", \"zz\": " + id};
    expect_error(ErrorKind::file, {"model.vocab.zz"}, [&] { load(tokenizer.json()); });
  }
}

TEST(Bpe, DoubledIdsAreRefused) {
  const SmallTokenizer tokenizer{.more_vocab = ", \"zz\": 65"};
  expect_error(ErrorKind::file, {"\"A\"", "\"zz\"", "65"}, [&] { load(tokenizer.json()); });
}

TEST(Bpe, SparseIdsWork) {
  const SmallTokenizer tokenizer{.merges = R"(["a b"])", .more_vocab = ", \"ab\": 2147483647"};
  const Tokenizer loaded = load(tokenizer.json());
  EXPECT_EQ(loaded.encode("ab"), (Ids{2147483647}));
  EXPECT_EQ(loaded.bytes(2147483647), "ab");
  EXPECT_EQ(loaded.size(), 2147483648);
  EXPECT_FALSE(loaded.is_known(256));
  EXPECT_FALSE(loaded.is_known(-1));
  EXPECT_EQ(loaded.bytes(2000000000), "");
}

TEST(Bpe, PiecesOutsideTheByteAlphabetDecodeAsTheyAreSpelled) {
  const SmallTokenizer tokenizer{.pieces = {"\u65e5", "a\u65e5", "a b"}, .merges = "[[\"a\", \"\u65e5\"]]"};
  const Tokenizer loaded = load(tokenizer.json());
  EXPECT_EQ(loaded.decode(Ids{257, 256, 258}), "a\u65e5\u65e5a b");
  EXPECT_EQ(loaded.encode("a\u65e5").size(), 4U);
}

TEST(Bpe, AnUnknownTokenThatIsNotThereOnlyMattersWhereBytesAreMissing) {
  const SmallTokenizer complete{.model_fields = R"("unk_token": "<unk>", )"};
  EXPECT_EQ(load(complete.json()).encode("ab"), (Ids{'a', 'b'}));
  std::string lacking = complete.json();
  lacking.replace(lacking.find("\"q\": "), 3, "\"qq\"");
  expect_error(ErrorKind::file, {"<unk>"}, [&] { load(lacking); });
}

TEST(Bpe, BytesWithoutAPieceAreDroppedOrBecomeTheUnknownToken) {
  const auto encode = [](const std::string& fields) {
    std::string json = SmallTokenizer{.pieces = {"<unk>"}, .model_fields = fields}.json();
    for (const std::string piece : {"\"q\"", "\"z\""})
      json.replace(json.find(piece), 3, "\"un" + piece.substr(1));
    return load(json).encode("aqzb");
  };
  EXPECT_EQ(encode(""), (Ids{'a', 'b'}));
  EXPECT_EQ(encode(R"("unk_token": "<unk>", )"), (Ids{'a', 256, 256, 'b'}));
  EXPECT_EQ(encode(R"("unk_token": "<unk>", "fuse_unk": true, )"), (Ids{'a', 256, 'b'}));
}

TEST(Bpe, LongPiecesAreMergedLikeShortOnes) {
  const SmallTokenizer tokenizer{.pieces = {"aa", "aaaa"}, .merges = R"(["a a", "aa aa"])"};
  EXPECT_EQ(load(tokenizer.json()).encode(std::string(4001, 'a')).size(), 1001U);
}

}  // namespace
}  // namespace qgen
