#include "qgen/weights/vocabulary.h"

#include <gmock/gmock.h>

#include "support/error_of.h"
#include "support/files.h"
#include "support/torch_bytes.h"

namespace qgen::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

Vocabulary read(const std::string& vocab, const std::string& merges) {
  return read_vocabulary(NamedBytes{as_bytes(vocab), "vocab"}, NamedBytes{as_bytes(merges), "merges"});
}

std::string refusal(const std::string& vocab, const std::string& merges) {
  return error_of([&] { read(vocab, merges); });
}

const std::string kNoMerges = pickle(pickled_list({}));

TEST(Vocabulary, PicklesGiveBytes) {
  const Vocabulary vocabulary =
      read(pickle(pickled_dict(
               {"K\x00"[0] + std::string(1, '\0'), pickled_bytes("\xFF"), "K\x01", pickled_bytes("ab")})),
           pickle(pickled_list({pickled_tuple({pickled_bytes("a"), pickled_bytes("b")})})));
  EXPECT_TRUE(vocabulary.raw_bytes);
  EXPECT_THAT(vocabulary.pieces, ElementsAre(Pair(0, "\xFF"), Pair(1, "ab")));
  EXPECT_THAT(vocabulary.merges, ElementsAre(Pair("a", "b")));
}

TEST(Vocabulary, BytesOfProtocolTwoAreCallsOfEncode) {
  const std::string call = pickled_call(pickled_global("_codecs", "encode"), {pickled_text("\xC3\xBF"
                                                                                           "a"),
                                                                              pickled_text("latin1")});
  EXPECT_THAT(read(pickle(pickled_dict({"K\x01", call})), kNoMerges).pieces, ElementsAre(Pair(1,
                                                                                              "\xFF"
                                                                                              "a")));
  const std::string folder = std::string(QGEN_TEST_DATA) + "/golden/torch/course/";
  const Vocabulary four = read_vocabulary(folder + "vocab.pkl", folder + "merges.pkl");
  const Vocabulary two = read_vocabulary(folder + "vocab_protocol2.pkl", folder + "merges_protocol2.pkl");
  EXPECT_EQ(four.pieces.size(), 281U);
  EXPECT_EQ(four.merges.size(), 24U);
  EXPECT_EQ(four.pieces, two.pieces);
  EXPECT_EQ(four.merges, two.merges);
}

TEST(Vocabulary, TextsOfBothDirections) {
  const Vocabulary vocabulary = read(R"({"a": 1, "2": "b", "Ġ": 0})", "#version: 0.2\na b\r\nĠ a\n");
  EXPECT_FALSE(vocabulary.raw_bytes);
  EXPECT_THAT(vocabulary.pieces, ElementsAre(Pair(1, "a"), Pair(2, "b"), Pair(0, "Ġ")));
  EXPECT_THAT(vocabulary.merges, ElementsAre(Pair("a", "b"), Pair("Ġ", "a")));
}

TEST(Vocabulary, MergesThatBeginWithAHashAreMerges) {
  EXPECT_THAT(read("{}", "# a\n#version b\n").merges, ElementsAre(Pair("#", "a"), Pair("#version", "b")));
}

TEST(Vocabulary, OtherContentsAreNamed) {
  EXPECT_THAT(refusal(pickle(pickled_list({})), kNoMerges),
              HasSubstr("a dict of ids and bytes expected, a list"));
  EXPECT_THAT(refusal(pickle(pickled_dict({"K\x01", pickled_text("a")})), kNoMerges),
              HasSubstr("bytes expected, a text"));
  EXPECT_THAT(refusal(pickle(pickled_dict({pickled_text("a"), pickled_text("b")})), kNoMerges),
              HasSubstr("an id expected"));
  EXPECT_THAT(refusal(pickle(pickled_dict({pickled(-1), pickled_bytes("a")})), kNoMerges), HasSubstr("-1"));
  EXPECT_THAT(
      refusal(
          pickle(pickled_dict({"K\x01", pickled_call(pickled_global("os", "system"), {pickled_text("x")})})),
          kNoMerges),
      HasSubstr("os.system"));
  EXPECT_THAT(refusal(pickle(pickled_dict({})), pickle(pickled_dict({}))), HasSubstr("merges: a list"));
  EXPECT_THAT(refusal(pickle(pickled_dict({})), pickle(pickled_list({pickled_tuple({pickled_bytes("a")})}))),
              HasSubstr("a pair"));
  EXPECT_THAT(refusal("[]", ""), HasSubstr("array found"));
  EXPECT_THAT(refusal(R"({"a": 1.5})", ""), HasSubstr("member a"));
  EXPECT_THAT(refusal(R"({"a": 4294967296})", ""), HasSubstr("4294967296"));
  EXPECT_THAT(refusal("{}", "a b\na b c\n"), AllOf(HasSubstr("merges: line 2"), HasSubstr("a b c")));
  EXPECT_THAT(refusal("{}", "a\n"), HasSubstr("line 1"));
  EXPECT_THAT(refusal("{}", kNoMerges), HasSubstr("one of each"));
}

TEST(Vocabulary, OneTextStatedManyTimesDoesNotTakeAllMemory) {
  const std::string text = std::string(1'000'000, 'a');
  std::string data = "](" + pickled_bytes(text) + std::string("q\x00", 2) + std::string("h\x00\x86", 3);
  for (int i = 0; i < 1000; ++i) data += std::string("h\x00h\x00\x86", 5);
  EXPECT_THAT(refusal(pickle(pickled_dict({})), pickle(data + "e")), HasSubstr("256000000"));
}

}  // namespace
}  // namespace qgen::test
