#include "engine/gguf_vocabulary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "qgen/engine/engine.h"
#include "support/error_of.h"
#include "support/gguf_bytes.h"

namespace qgen {
namespace {

using test::error_of;
using test::GgufBytes;
using test::GgufWriter;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Tokens a, b, ab, a control token, one of the user's and one that is not used.
GgufWriter vocabulary(const std::string& split = "qwen2") {
  GgufWriter file;
  file.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", split);
  file.texts("tokenizer.ggml.tokens", {"a", "b", "ab", "<|im_end|>", "<tool>", "[PAD5]"});
  return file.i32s("tokenizer.ggml.token_type", {1, 1, 1, 3, 4, 5}).texts("tokenizer.ggml.merges", {"a b"});
}

VocabularyParts parts_of(const GgufWriter& writer) {
  const GgufBytes file(writer.file());
  return read_gguf_vocabulary(file.open().metadata());
}

std::string refusal(const GgufWriter& writer, ErrorKind kind = ErrorKind::file) {
  return error_of([&] { (void)parts_of(writer); }, kind);
}

TEST(GgufVocabulary, TakesPiecesByTheirTypes) {
  const VocabularyParts parts = parts_of(vocabulary().u32("tokenizer.ggml.eos_token_id", 3));
  ASSERT_EQ(parts.pieces.size(), 5u);  // the unused one stands for nothing
  EXPECT_FALSE(parts.pieces[2].second.added);
  EXPECT_TRUE(parts.pieces[3].second.control);
  EXPECT_TRUE(parts.pieces[4].second.added);
  EXPECT_FALSE(parts.pieces[4].second.control);
  EXPECT_EQ(parts.split, "qwen2");
  const Tokenizer tokenizer = Tokenizer::from_parts(parts, "m.gguf");
  EXPECT_EQ(tokenizer.encode("ab<tool>b"), (std::vector<TokenId>{2, 4, 1}));
  EXPECT_EQ(tokenizer.encode("ab<|im_end|>", {.parse_special = true}), (std::vector<TokenId>{2, 3}));
  EXPECT_EQ(tokenizer.end_ids(), (std::vector<TokenId>{3}));
  EXPECT_FALSE(tokenizer.is_known(5));
}

TEST(GgufVocabulary, ReadsEndTokensFromKeysAndKnownNames) {
  EXPECT_THAT(parts_of(vocabulary()).end_ids, ElementsAre(3));
  EXPECT_THAT(
      parts_of(vocabulary().u32("tokenizer.ggml.eot_token_id", 1).u32("tokenizer.ggml.eom_token_id", 0))
          .end_ids,
      ElementsAre(3, 1, 0));
}

TEST(GgufVocabulary, AddsAStartTokenWhereTheFileOrTheSplitRuleSaysSo) {
  const auto with_bos = [](const char* split) {
    return vocabulary(split).u32("tokenizer.ggml.bos_token_id", 3);
  };
  EXPECT_FALSE(parts_of(with_bos("qwen2")).add_bos);
  EXPECT_TRUE(parts_of(with_bos("llama-bpe")).add_bos);
  EXPECT_TRUE(parts_of(with_bos("tekken")).add_bos);
  EXPECT_TRUE(parts_of(with_bos("qwen2").boolean("tokenizer.ggml.add_bos_token", true)).add_bos);
  EXPECT_FALSE(parts_of(with_bos("llama-bpe").boolean("tokenizer.ggml.add_bos_token", false)).add_bos);
  EXPECT_THAT(refusal(vocabulary().boolean("tokenizer.ggml.add_bos_token", true)),
              HasSubstr("tokenizer.ggml.bos_token_id: missing"));
}

TEST(GgufVocabulary, OnlyTheDefaultTemplateIsTaken) {
  const GgufWriter file =
      vocabulary().text("tokenizer.chat_template.rag", "other").text("tokenizer.chat_template", "main");
  EXPECT_EQ(parts_of(file).chat_template, "main");
}

TEST(GgufVocabulary, RefusesOtherKindsByName) {
  const auto of_model = [](const char* model) {
    return refusal(GgufWriter().text("tokenizer.ggml.model", model), ErrorKind::unsupported);
  };
  EXPECT_THAT(of_model("llama"),
              HasSubstr("tokenizer.ggml.model: \"llama\" (SentencePiece) is not supported"));
  EXPECT_THAT(of_model("none"), HasSubstr("\"none\": the file has no tokenizer"));
  EXPECT_THAT(of_model("bert"), HasSubstr("\"bert\" is not supported"));
  EXPECT_THAT(refusal(GgufWriter()), HasSubstr("tokenizer.ggml.model: missing"));
}

TEST(GgufVocabulary, RefusesIdsOutOfRange) {
  GgufWriter file;
  file.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "qwen2");
  file.texts("tokenizer.ggml.tokens", {"a", "b", "c"}).texts("tokenizer.ggml.merges", {});
  for (const std::string key : {"bos_token_id", "eos_token_id", "eot_token_id"}) {
    EXPECT_THAT(refusal(GgufWriter(file).u32("tokenizer.ggml." + key, 5)),
                HasSubstr("tokenizer.ggml." + key + ": id 5 out of range 0..2"));
  }
  EXPECT_THAT(refusal(GgufWriter(file).raw("tokenizer.ggml.eos_token_id", GgufType::i32, "\xFF\xFF\xFF\xFF")),
              HasSubstr("id -1 out of range 0..2"));
  EXPECT_THAT(refusal(GgufWriter(file).f32("tokenizer.ggml.eos_token_id", 1)),
              HasSubstr("eos_token_id: an integer"));
}

TEST(GgufVocabulary, RefusesListsOfOtherLengths) {
  GgufWriter file;
  file.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "qwen2");
  file.texts("tokenizer.ggml.tokens", {"a", "b", "c"}).texts("tokenizer.ggml.merges", {});
  EXPECT_THAT(refusal(GgufWriter(file).i32s("tokenizer.ggml.token_type", {1, 1})),
              HasSubstr("tokenizer.ggml.token_type: 3 entries expected (tokenizer.ggml.tokens), 2 found"));
  EXPECT_THAT(refusal(GgufWriter(file).array("tokenizer.ggml.scores", GgufType::f32, 1, "\0\0\0\0")),
              HasSubstr("tokenizer.ggml.scores"));
  EXPECT_THAT(refusal(GgufWriter(file).i32s("tokenizer.ggml.token_type", {1, 1, 9})),
              HasSubstr("token_type: type 9 of token 2"));
}

TEST(GgufVocabulary, AnEmptyListOfMergesLeavesBytes) {
  GgufWriter file;
  file.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2");
  file.texts("tokenizer.ggml.tokens", {"a", "b", "ab"});
  EXPECT_THAT(refusal(file), HasSubstr("tokenizer.ggml.merges: missing"));
  const VocabularyParts parts = parts_of(file.texts("tokenizer.ggml.merges", {}));
  EXPECT_EQ(Tokenizer::from_parts(parts, "m.gguf").encode("ab"), (std::vector<TokenId>{0, 1}));
}

TEST(GgufVocabulary, RefusesMergesThatAreNoPairs) {
  for (const std::string wrong : {"", "ab", "a ", " b"}) {
    GgufWriter file;
    file.text("tokenizer.ggml.model", "gpt2").text("tokenizer.ggml.pre", "gpt-2");
    file.texts("tokenizer.ggml.tokens", {"a", "b"}).texts("tokenizer.ggml.merges", {wrong});
    EXPECT_THAT(refusal(file), HasSubstr("tokenizer.ggml.merges: two pieces")) << wrong;
  }
}

TEST(GgufVocabulary, WithoutASplitRuleOnlyQwenIsBeyondDoubt) {
  GgufWriter file;
  file.text("tokenizer.ggml.model", "gpt2")
      .texts("tokenizer.ggml.tokens", {"a"})
      .texts("tokenizer.ggml.merges", {});
  EXPECT_THAT(refusal(GgufWriter(file).text("general.architecture", "llama")),
              HasSubstr("tokenizer.ggml.pre: missing"));
  EXPECT_EQ(parts_of(GgufWriter(file).text("general.architecture", "qwen2")).split, "qwen2");
}

}  // namespace
}  // namespace qgen
