#include <thread>

#include "tokenizer/support.h"

namespace qgen {
namespace {

using testing::added_token;
using testing::expect_error;
using testing::load;
using testing::read_file;
using testing::SmallTokenizer;
using testing::tales;
using testing::TemporaryFolder;
using Ids = std::vector<TokenId>;

const std::string kBos =
    R"({"type": "TemplateProcessing", "single": [{"SpecialToken": {"id": "<s>", "type_id": 0}},)"
    R"( {"Sequence": {"id": "A", "type_id": 0}}], "pair": [],)"
    R"( "special_tokens": {"<s>": {"id": "<s>", "ids": [256], "tokens": ["<s>"]}}})";

TEST(Load, TheStartTokenIsTheTemplatesAndCanBeLeftOut) {
  const SmallTokenizer tokenizer{.added = "[" + added_token(256, "<s>", {"special"}) + "]",
                                 .post_processor = kBos};
  const Tokenizer loaded = load(tokenizer.json());
  EXPECT_EQ(loaded.bos(), 256);
  EXPECT_EQ(loaded.encode("a"), (Ids{256, 'a'}));
  EXPECT_EQ(loaded.encode("a", {.add_bos = false}), (Ids{'a'}));
  EXPECT_EQ(loaded.encode(""), (Ids{256}));
}

TEST(Load, WithoutATemplateAnEmptyTextHasNoIds) {
  EXPECT_EQ(tales().bos(), std::nullopt);
  EXPECT_TRUE(tales().encode("").empty());
}

TEST(Load, AddBosTokenOfTheConfigurationDoesNotOverrideThePostProcessor) {
  SmallTokenizer tokenizer{.added = "[" + added_token(256, "<s>", {"special"}) + "]", .post_processor = kBos};
  const auto encode = [&](const std::string& config) {
    return Tokenizer::from_json(tokenizer.json(), config, "tokenizer.json").encode("a");
  };
  EXPECT_EQ(encode(R"({"add_bos_token": false, "bos_token": "<s>"})"), (Ids{256, 'a'}));
  tokenizer.post_processor = "null";
  EXPECT_EQ(encode(R"({"add_bos_token": true, "bos_token": "<s>"})"), (Ids{'a'}));
}

TEST(Load, TheClassNameDoesNotOverrideThePipeline) {
  const SmallTokenizer tokenizer;
  const Tokenizer loaded =
      Tokenizer::from_json(tokenizer.json(), R"({"tokenizer_class": "LlamaTokenizer"})", "tokenizer.json");
  EXPECT_EQ(loaded.decode(loaded.encode("hello world")), "hello world");
}

TEST(Load, TheDecoderFieldDoesNotChangeTheBytes) {
  for (const std::string decoder :
       {R"(null)", R"({"type": "Sequence", "decoders": [{"type": "ByteFallback"}, {"type": "Fuse"}]})"}) {
    const SmallTokenizer tokenizer{
        .pieces = {"\u0120w", "\u010a\u010a"}, .merges = "[[\"\u0120\", \"w\"]]", .decoder = decoder};
    const Tokenizer loaded = load(tokenizer.json());
    EXPECT_EQ(loaded.decode(loaded.encode("Hello! How can w\n\n")), "Hello! How can w\n\n");
    EXPECT_EQ(loaded.decode(Ids{256, 257}), " w\n\n");
  }
}

TEST(Load, ComposedAndDecomposedAccentsGiveTheSameIds) {
  EXPECT_EQ(tales().encode("e\u0301"), tales().encode("\u00e9"));
  EXPECT_NE(tales().encode("\u0301"), Ids{});
}

TEST(Load, EndTokensComeFromTheConfiguration) {
  const auto end_ids = [](const std::string& config) {
    return Tokenizer::from_json(read_file(QGEN_TALES_TOKENIZER), config, "tokenizer.json").end_ids();
  };
  EXPECT_EQ(end_ids(R"({"eos_token": "<|im_end|>"})"), (Ids{4095}));
  EXPECT_EQ(end_ids(R"({"eos_token": {"content": "<|endoftext|>", "lstrip": false}})"), (Ids{4093}));
  EXPECT_EQ(end_ids(R"({"eos_token": null})"), Ids{});
  EXPECT_EQ(end_ids(R"({"eos_token": "<|not there|>"})"), Ids{});
  EXPECT_EQ(end_ids(""), Ids{});
  EXPECT_EQ(end_ids(R"({"model_max_length": 1000000000000000019884624838656, "eos_token": "<|im_end|>"})"),
            (Ids{4095}));
  expect_error(ErrorKind::file, {"eos_token"}, [&] { end_ids(R"({"eos_token": 5})"); });
}

TEST(Load, TheChatTemplateIsTheFileThenTheFieldThenTheOneNamedDefault) {
  const TemporaryFolder folder;
  const auto chat_template = [&] { return Tokenizer::from_folder(folder.path()).chat_template(); };
  folder.write("tokenizer.json", SmallTokenizer{}.json());
  EXPECT_EQ(chat_template(), "");
  folder.write("tokenizer_config.json", R"({"chat_template": "field"})");
  EXPECT_EQ(chat_template(), "field");
  folder.write("tokenizer_config.json", R"({"chat_template": [{"name": "tool_use", "template": "x"},)"
                                        R"( {"name": "default", "template": "named"}]})");
  EXPECT_EQ(chat_template(), "named");
  folder.write("chat_template.jinja", "file\n");
  EXPECT_EQ(chat_template(), "file\n");
}

TEST(Load, UnknownPartsAreRefusedByName) {
  const auto refused = [](const SmallTokenizer& tokenizer, const std::vector<std::string>& parts) {
    expect_error(ErrorKind::unsupported, parts, [&] { load(tokenizer.json()); });
  };
  refused({.normalizer = R"({"type": "NFKC"})"}, {"normalizer", "NFKC"});
  refused({.normalizer = R"({"type": "Sequence", "normalizers": [{"type": "NFC"}, {"type": "Lowercase"}]})"},
          {"normalizer", "Lowercase"});
  refused({.pre_tokenizer = "null"}, {"pre_tokenizer", "byte-level"});
  refused({.pre_tokenizer = R"({"type": "Metaspace", "replacement": "_"})"}, {"Metaspace"});
  refused({.pre_tokenizer = R"({"type": "Digits", "individual_digits": true})"}, {"ByteLevel"});
  refused({.pre_tokenizer =
               R"({"type": "Sequence", "pretokenizers": [{"type": "ByteLevel", "add_prefix_space": false},)"
               R"( {"type": "Digits", "individual_digits": true}]})"},
          {"Digits", "after ByteLevel"});
  refused({.post_processor = R"({"type": "BertProcessing"})"}, {"post_processor", "BertProcessing"});
  refused({.model_fields = R"("byte_fallback": true, )"}, {"byte_fallback"});
  refused({.model_fields = R"("dropout": 0.1, )"}, {"dropout"});
  refused({.model_fields = R"("continuing_subword_prefix": "##", )"}, {"continuing_subword_prefix"});
  refused({.model_fields = R"("end_of_word_suffix": "</w>", )"}, {"end_of_word_suffix"});
  std::string unigram = SmallTokenizer{}.json();
  unigram.replace(unigram.find("BPE"), 3, "Unigram");
  expect_error(ErrorKind::unsupported, {"Unigram"}, [&] { load(unigram); });
}

TEST(Load, UnknownSplitRulesAreRefusedByTheirPattern) {
  const auto split = [](const std::string& pattern, const std::string& behavior) {
    return SmallTokenizer{.pre_tokenizer =
                              R"({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": )" +
                              pattern + R"(, "behavior": ")" + behavior +
                              R"(", "invert": false}, {"type": "ByteLevel", "add_prefix_space": false}]})"}
        .json();
  };
  expect_error(ErrorKind::unsupported, {"split rule", "\\x1B[2Jx"},
               [&] { load(split(R"({"Regex": "\u001b[2Jx"})", "Isolated")); });
  expect_error(ErrorKind::unsupported, {"pattern"}, [&] { load(split(R"({"String": " "})", "Isolated")); });
  const std::string gpt2 =
      R"x({"Regex": "'s|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+"})x";
  EXPECT_NO_THROW(load(split(gpt2, "Isolated")));
  expect_error(ErrorKind::unsupported, {"MergedWithNext"}, [&] { load(split(gpt2, "MergedWithNext")); });
}

TEST(Load, DamagedFilesAreRefused) {
  const std::string whole = SmallTokenizer{.pieces = {"ab"}, .merges = R"(["a b"])"}.json();
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    expect_error(ErrorKind::file, {"tokenizer.json"}, [&] { load(whole.substr(0, length)); });
  }
  for (const std::string text : {"[]", "1", "{}", R"({"model": 1})", R"({"model": {"type": "BPE"}})",
                                 R"({"model": {}})", R"({"version": 1})", "{\"a\": \"\xFF\"}"}) {
    EXPECT_THROW(load(text), Error) << text;
  }
  EXPECT_THROW(load(std::string(100'000, '[')), Error);
}

TEST(Load, TemplatesWithIdsThatTheVocabularyDoesNotHaveAreRefused) {
  const auto with_id = [](const std::string& id, bool behind) {
    const std::string text = R"({"Sequence": {"id": "A", "type_id": 0}})";
    const std::string token = R"({"SpecialToken": {"id": "<s\u001b>", "type_id": 0}})";
    return SmallTokenizer{.post_processor = R"({"type": "TemplateProcessing", "single": [)" +
                                            (behind ? text + "," + token : token + "," + text) +
                                            R"(], "special_tokens": {"<s\u001b>": {"ids": [255, )" + id +
                                            R"(]}}})"}
        .json();
  };
  for (const bool behind : {false, true}) {
    EXPECT_NO_THROW(load(with_id("254", behind)));
    for (const std::string id : {"256", "2147483647"}) {
      expect_error(ErrorKind::file, {"<s\\x1B>", id}, [&] { load(with_id(id, behind)); });
    }
  }
}

TEST(Load, TemplatesThatAreNotAboutOneTextAreRefused) {
  const auto with_template = [](const std::string& single) {
    return SmallTokenizer{.post_processor = R"({"type": "TemplateProcessing", "single": [)" + single +
                                            R"(], "special_tokens": {}})"}
        .json();
  };
  const std::string text = R"({"Sequence": {"id": "A", "type_id": 0}})";
  EXPECT_NO_THROW(load(with_template(text)));
  EXPECT_THROW(load(with_template("")), Error);
  EXPECT_THROW(load(with_template(text + "," + text)), Error);
  EXPECT_THROW(load(with_template(R"({"Sequence": {"id": "B", "type_id": 0}})")), Error);
  EXPECT_THROW(load(with_template(text + R"(, {"SpecialToken": {"id": "<none>", "type_id": 0}})")), Error);
}

TEST(Load, FoldersWithoutATokenizerSayWhatIsMissing) {
  const TemporaryFolder folder;
  expect_error(ErrorKind::file, {"tokenizer.json", "vocab.json"},
               [&] { Tokenizer::from_folder(folder.path()); });
  folder.write("tokenizer.model", "x");
  expect_error(ErrorKind::unsupported, {"SentencePiece"}, [&] { Tokenizer::from_folder(folder.path()); });
  std::filesystem::create_directory(folder.path() / "tokenizer.json");
  expect_error(ErrorKind::file, {"directory"}, [&] { Tokenizer::from_folder(folder.path()); });
}

TEST(Load, FindKnowsPiecesAndAddedTokensByTheirSpelling) {
  EXPECT_EQ(tales().find("<|im_start|>"), 4094);
  EXPECT_EQ(tales().find("\u0120the"), tales().encode(" the").front());
  EXPECT_EQ(tales().find(" the"), std::nullopt);
  EXPECT_EQ(tales().size(), 4096);
  EXPECT_TRUE(tales().is_special(4095));
  EXPECT_FALSE(tales().is_special(4092));
  EXPECT_FALSE(tales().is_known(4096));
  EXPECT_EQ(tales().bytes(4096), "");
}

TEST(Load, ThreadsShareATokenizer) {
  const std::string text = "Once upon a time there was a king. \u00e9\u0301 <|im_end|>\n\n";
  const Ids expected = tales().encode(text);
  std::vector<std::thread> threads;
  std::vector<Ids> results(4);
  for (Ids& result : results) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) result = tales().encode(text);
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const Ids& result : results) EXPECT_EQ(result, expected);
}

}  // namespace
}  // namespace qgen
