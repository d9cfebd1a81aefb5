// Vocabularies given as plain data. Expected ids of whole texts are those of Hugging Face tokenizers for the
// tokenizer.json that the data are taken from (tools/reference/tokenizer_golden.py).

#include <optional>

#include "support/files.h"
#include "tokenizer/support.h"

namespace qgen {
namespace {

using testing::expect_error;
using testing::golden;
using testing::golden_lines;
using testing::ids_of;
using testing::read_file;
using Ids = std::vector<TokenId>;

std::string bytes_of(const std::string& spelling) {
  return byte_alphabet::bytes_of(spelling).value_or(spelling);
}

/// What a writer of GGUF files or of pickles keeps of a tokenizer.json.
VocabularyParts parts_of(const Json& root, const std::string& split, bool raw_bytes) {
  VocabularyParts parts;
  parts.split = split;
  parts.raw_bytes = raw_bytes;
  const auto text = [raw_bytes](const std::string& spelling) {
    return raw_bytes ? bytes_of(spelling) : spelling;
  };
  std::vector<std::string> added;
  for (const Json& token : *root.find("added_tokens")->as_array()) {
    added.push_back(*token.find("content")->as_string());
    parts.pieces.push_back({static_cast<TokenId>(*token.find("id")->as_int()),
                            {added.back(), *token.find("special")->as_bool(), true}});
  }
  const Json& model = *root.find("model");
  for (const auto& [spelling, id] : *model.find("vocab")->as_object()) {
    if (std::find(added.begin(), added.end(), spelling) != added.end()) continue;
    parts.pieces.push_back({static_cast<TokenId>(*id.as_int()), {text(spelling)}});
  }
  for (const Json& merge : *model.find("merges")->as_array()) {
    if (const std::string* line = merge.as_string()) {
      const std::size_t space = line->find(' ');
      parts.merges.emplace_back(text(line->substr(0, space)), text(line->substr(space + 1)));
    } else {
      parts.merges.emplace_back(text(*(*merge.as_array())[0].as_string()),
                                text(*(*merge.as_array())[1].as_string()));
    }
  }
  return parts;
}

struct Case {
  const char* file;
  const char* split;
  std::optional<TokenId> bos{};
};

class GoldenParts : public ::testing::TestWithParam<Case> {};

TEST_P(GoldenParts, EncodeAndDecodeAsTheReferenceDoes) {
  const std::string name = GetParam().file;
  const auto path = name == "tales" ? std::filesystem::path(QGEN_TALES_TOKENIZER) : golden(name + ".json");
  const Json root = parse_json(read_file(path), name);
  for (const bool raw_bytes : {false, true}) {
    VocabularyParts parts = parts_of(root, GetParam().split, raw_bytes);
    parts.bos = GetParam().bos;
    parts.add_bos = true;
    const Tokenizer tokenizer = Tokenizer::from_parts(parts, name);
    for (const Json& line : golden_lines(name + ".jsonl")) {
      const std::string& text = *line.find("t")->as_string();
      const Ids ids = ids_of(*line.find("i"));
      const Ids plain = line.find("p") ? ids_of(*line.find("p")) : ids;
      ASSERT_EQ(tokenizer.encode(text, {.parse_special = true, .add_bos = true}), ids) << text;
      ASSERT_EQ(tokenizer.encode(text, {.parse_special = false, .add_bos = true}), plain) << text;
      const auto decoded = [&](const char* key) {
        return line.find(key) ? *line.find(key)->as_string() : text;
      };
      ASSERT_EQ(replace_invalid_utf8(tokenizer.decode(ids)), decoded("d"));
      ASSERT_EQ(replace_invalid_utf8(tokenizer.decode(ids, true)), decoded("s"));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, GoldenParts,
                         ::testing::Values(Case{"tales", "qwen2"}, Case{"gpt2", "gpt-2"},
                                           Case{"smollm2", "smollm"}, Case{"llama3", "llama-bpe", 0},
                                           Case{"tekken", "tekken", 1}),
                         [](const auto& tested) { return std::string(tested.param.file); });

/// A piece for every byte (id: the byte), in the byte alphabet.
VocabularyParts all_bytes(const std::string& split = "gpt-2") {
  VocabularyParts parts;
  parts.split = split;
  for (unsigned byte = 0; byte < 256; ++byte) {
    parts.pieces.push_back({static_cast<TokenId>(byte),
                            {std::string(byte_alphabet::spelling_of(static_cast<unsigned char>(byte)))}});
  }
  return parts;
}

Tokenizer load(const VocabularyParts& parts) {
  return Tokenizer::from_parts(parts, "parts");
}

void expect_refused(const VocabularyParts& parts, const std::vector<std::string>& words,
                    ErrorKind kind = ErrorKind::file) {
  expect_error(kind, words, [&] { (void)load(parts); });
}

TEST(VocabularyParts, IdsMayHaveGapsAndComeInAnyOrder) {
  VocabularyParts parts = all_bytes();
  parts.pieces.push_back({900, {"<|end|>", true, true}});
  parts.pieces.push_back({700, {"ab"}});
  parts.merges = {{"a", "b"}};
  const Tokenizer tokenizer = load(parts);
  EXPECT_EQ(tokenizer.encode("abc"), (Ids{700, 'c'}));
  EXPECT_EQ(tokenizer.size(), 901);
  EXPECT_TRUE(tokenizer.is_known(700));
  EXPECT_FALSE(tokenizer.is_known(701));
  EXPECT_EQ(tokenizer.decode(Ids{700, 900}), "ab<|end|>");
  EXPECT_EQ(tokenizer.decode(Ids{700, 900}, true), "ab");
}

TEST(VocabularyParts, PlainTextNeverBecomesAControlToken) {
  VocabularyParts parts = all_bytes("llama-bpe");  // a whole piece is taken without merging
  parts.pieces.push_back({256, {"stop", true, true}});
  parts.pieces.push_back({257, {"word", false, true}});
  const Tokenizer tokenizer = load(parts);
  EXPECT_EQ(tokenizer.encode("stop"), (Ids{'s', 't', 'o', 'p'}));
  EXPECT_EQ(tokenizer.encode("stop", {.parse_special = true}), (Ids{256}));
  EXPECT_EQ(tokenizer.encode("word"), (Ids{257}));
  EXPECT_TRUE(tokenizer.is_special(256));
  EXPECT_FALSE(tokenizer.is_special(257));
}

TEST(VocabularyParts, StartAndEndTokensAreAddedOnlyWhereAsked) {
  VocabularyParts parts = all_bytes();
  parts.pieces.push_back({256, {"<s>", true, true}});
  parts.pieces.push_back({257, {"</s>", true, true}});
  parts.bos = 256;
  parts.eos = 257;
  parts.end_ids = {257, 'x'};
  EXPECT_EQ(load(parts).encode("a"), (Ids{'a'}));
  EXPECT_EQ(load(parts).bos(), std::nullopt);
  EXPECT_EQ(load(parts).end_ids(), (Ids{257, 'x'}));
  parts.add_bos = parts.add_eos = true;
  EXPECT_EQ(load(parts).encode("a"), (Ids{256, 'a', 257}));
  EXPECT_EQ(load(parts).bos(), 256);
}

TEST(VocabularyParts, WithoutMergesATextBecomesItsBytes) {
  EXPECT_EQ(load(all_bytes()).encode("a b"), (Ids{'a', ' ', 'b'}));
}

TEST(VocabularyParts, TheNameOfTheSplitRuleSaysWhetherTextIsNormalised) {
  const std::string decomposed = "e\u0301";
  EXPECT_EQ(load(all_bytes("qwen2")).encode(decomposed), (Ids{0xC3, 0xA9}));
  EXPECT_EQ(load(all_bytes("gpt-2")).encode(decomposed), (Ids{'e', 0xCC, 0x81}));
}

TEST(VocabularyParts, BytesThatAreNoUtf8CanBePieces) {
  VocabularyParts parts;
  parts.split = "gpt-2";
  parts.raw_bytes = true;
  for (int byte = 0; byte < 256; ++byte)
    parts.pieces.push_back({byte, {std::string(1, static_cast<char>(byte))}});
  parts.pieces.push_back({300, {"\xE2\x82"}});
  parts.merges = {{"\xE2", "\x82"}};
  const Tokenizer tokenizer = load(parts);
  EXPECT_EQ(tokenizer.encode("\u20AC"), (Ids{300, 0xAC}));
  EXPECT_EQ(tokenizer.bytes(300), "\xE2\x82");
  EXPECT_EQ(tokenizer.decode(Ids{0}), std::string(1, '\0'));
}

TEST(VocabularyParts, TheChatTemplateIsPassedOn) {
  VocabularyParts parts = all_bytes();
  parts.chat_template = "{{ messages }}";
  EXPECT_EQ(load(parts).chat_template(), "{{ messages }}");
}

TEST(VocabularyParts, UnknownSplitRulesAreRefusedByNameWithTheList) {
  expect_refused(all_bytes("chameleon\x1b"), {"parts: the split rule \"chameleon\\x1B\"", "qwen2", "tekken"},
                 ErrorKind::unsupported);
}

TEST(VocabularyParts, WhatOccursTwiceIsRefused) {
  VocabularyParts ids = all_bytes();
  ids.pieces.push_back({7, {"seven"}});
  expect_refused(ids, {"two pieces have the same id 7"});
  VocabularyParts texts = all_bytes();
  texts.pieces.push_back({256, {"a", false, true}});
  expect_refused(texts, {"the piece \"a\" occurs twice"});
}

TEST(VocabularyParts, IdsWithoutAPieceAreRefused) {
  VocabularyParts parts;
  parts.split = "gpt-2";
  parts.pieces = {{0, {"a"}}, {2, {"b"}}};
  parts.eos = 5;
  expect_refused(parts, {"end token's id 5 out of range 0..2"});
  parts.eos = 1;
  expect_refused(parts, {"end token's id 1 stands for no piece"});
  parts.eos.reset();
  parts.bos = -1;
  expect_refused(parts, {"start token's id -1 out of range 0..2"});
  parts.bos.reset();
  parts.pieces.push_back({-3, {"c"}});
  expect_refused(parts, {"\"c\" has the id -3"});
}

TEST(VocabularyParts, MergesOfWhatTheVocabularyLacksAreRefused) {
  VocabularyParts parts = all_bytes();
  parts.merges = {{"a", "b"}};
  expect_refused(parts, {"merge 0", "needs the piece \"ab\""});
  parts.pieces.push_back({256, {"ab", true, true}});  // a control token is no piece
  expect_refused(parts, {"merge 0", "needs the piece \"ab\""});
}

/// A folder with these files of tests/golden/tokenizer.
class Folder {
 public:
  explicit Folder(const std::string& tokenizer, const std::string& config = "") {
    std::filesystem::copy_file(
        tokenizer == "tales" ? std::filesystem::path(QGEN_TALES_TOKENIZER) : golden(tokenizer + ".json"),
        folder_.path() / "tokenizer.json");
    if (!config.empty()) test::write_file(folder_.path() / "tokenizer_config.json", config);
  }
  [[nodiscard]] const std::filesystem::path& path() const { return folder_.path(); }

 private:
  test::TempFolder folder_;
};

class GoldenFolder : public ::testing::TestWithParam<const char*> {};

TEST_P(GoldenFolder, MakeTheTokenizerOfTheFolder) {
  const Folder folder(GetParam());
  const Tokenizer tokenizer = Tokenizer::from_parts(Tokenizer::parts_of_folder(folder.path()), "parts");
  std::size_t compared = 0;
  for (const Json& line : golden_lines(std::string(GetParam()) + ".jsonl")) {
    const std::string& text = *line.find("t")->as_string();
    ASSERT_EQ(tokenizer.encode(text, {.parse_special = true, .add_bos = true}), ids_of(*line.find("i")))
        << text;
    ++compared;
  }
  EXPECT_GT(compared, 10U);
}

INSTANTIATE_TEST_SUITE_P(Files, GoldenFolder, ::testing::Values("gpt2", "llama3", "smollm2", "tales"));

TEST(FolderParts, HaveTheControlTokensOfTheConfigAndItsTemplate) {
  const Folder folder("gpt2",
                      R"({"bos_token":"<|endoftext|>","eos_token":"<|endoftext|>","chat_template":"x"})");
  const VocabularyParts parts = Tokenizer::parts_of_folder(folder.path());
  const auto end = Tokenizer::from_folder(folder.path()).find("<|endoftext|>");
  ASSERT_TRUE(end.has_value());
  EXPECT_EQ(parts.bos, end);
  EXPECT_EQ(parts.eos, end);
  EXPECT_FALSE(parts.add_bos || parts.add_eos);
  EXPECT_EQ(parts.chat_template, "x");
  EXPECT_EQ(parts.split, "gpt-2");
}

TEST(FolderParts, WaysOfSplittingWithoutANameAreRefused) {
  const Folder folder("prefixed");
  expect_error(ErrorKind::unsupported, {"way of splitting text has no name"},
               [&] { static_cast<void>(Tokenizer::parts_of_folder(folder.path())); });
}

}  // namespace
}  // namespace qgen
