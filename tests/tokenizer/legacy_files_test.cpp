// Folders with vocab.json and merges.txt, against what transformers makes of them.

#include "tokenizer/support.h"

namespace qgen {
namespace {

using testing::expect_error;
using testing::golden;
using testing::ids_of;
using testing::read_file;
using testing::SmallTokenizer;
using testing::TemporaryFolder;
using Ids = std::vector<TokenId>;

/// JSON text of a value that was read from a file.
std::string text_of(const Json& value) {
  if (const std::string* string = value.as_string()) return testing::json_string(*string);
  if (const auto boolean = value.as_bool()) return *boolean ? "true" : "false";
  if (const auto integer = value.as_int()) return std::to_string(*integer);
  std::string text;
  if (const JsonArray* array = value.as_array()) {
    for (const Json& item : *array) text += (text.empty() ? "" : ",") + text_of(item);
    return "[" + text + "]";
  }
  if (const JsonObject* object = value.as_object()) {
    for (const auto& [key, item] : *object) {
      text += (text.empty() ? "" : ",") + testing::json_string(key) + ":" + text_of(item);
    }
    return "{" + text + "}";
  }
  return "null";
}

TEST(LegacyFiles, FoldersAreReadAsTransformersReadsThem) {
  const Json data = parse_json(read_file(golden("legacy.json")), "legacy.json");
  const JsonArray& cases = *data.find("cases")->as_array();
  ASSERT_GE(cases.size(), 25U);
  for (const Json& item : cases) {
    const TemporaryFolder folder;
    folder.write("vocab.json", text_of(*data.find("vocab")));
    folder.write("merges.txt", *data.find("merges")->as_string());
    for (const auto& [name, content] : *item.find("files")->as_object()) folder.write(name, text_of(content));
    SCOPED_TRACE(text_of(*item.find("files")));
    const Tokenizer tokenizer = Tokenizer::from_folder(folder.path());
    const JsonArray& texts = *data.find("texts")->as_array();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      const std::string& text = *texts[i].as_string();
      EXPECT_EQ(tokenizer.encode(text, {.parse_special = true}), ids_of((*item.find("ids")->as_array())[i]))
          << text;
    }
    const auto eos = item.find("eos")->as_int();
    EXPECT_EQ(tokenizer.end_ids(), eos ? Ids{static_cast<TokenId>(*eos)} : Ids{});
  }
}

struct LegacyFolder {
  std::vector<std::string> pieces{"##", "#version", "#version:"};
  std::string merges = "#version: 0.2\n# #\n";
  std::string config = R"({"tokenizer_class": "Qwen2Tokenizer"})";

  Tokenizer load() const {
    const TemporaryFolder folder;
    folder.write("vocab.json", SmallTokenizer{.pieces = pieces}.vocab());
    folder.write("merges.txt", merges);
    if (!config.empty()) folder.write("tokenizer_config.json", config);
    return Tokenizer::from_folder(folder.path());
  }
};

TEST(LegacyFiles, OnlyTheFirstLineOfTheMergesIsAHeader) {
  EXPECT_EQ(LegacyFolder{}.load().encode("##"), (Ids{256}));
  EXPECT_EQ(LegacyFolder{.merges = "# #\n"}.load().encode("##"), (Ids{256}));
  EXPECT_EQ(LegacyFolder{.merges = "#version: 0.2\r\n# #\r\n"}.load().encode("##"), (Ids{256}));
  EXPECT_EQ(LegacyFolder{.merges = "# #"}.load().encode("##"), (Ids{256}));
  const LegacyFolder later{.merges = "# #\n#version :\n"};
  EXPECT_NO_THROW(later.load());
  const LegacyFolder wrong{.merges = "# #\n#version x\n"};
  expect_error(ErrorKind::file, {"merge 1", "#version"}, [&] { wrong.load(); });
}

TEST(LegacyFiles, MalformedMergesAreRefusedWithTheirLine) {
  for (const std::string merges : {"#version: 0.2\n# # #\n", "#version: 0.2\n##\n", "# #\n\n"}) {
    expect_error(ErrorKind::file, {"merges.txt", "line 2"}, [&] { LegacyFolder{.merges = merges}.load(); });
  }
}

TEST(LegacyFiles, WithoutAKnownClassThereIsNoSplitRule) {
  expect_error(ErrorKind::file, {"tokenizer_class"}, [] { LegacyFolder{.config = ""}.load(); });
  expect_error(ErrorKind::file, {"tokenizer_class"}, [] { LegacyFolder{.config = "{}"}.load(); });
  expect_error(ErrorKind::unsupported, {"LlamaTokenizer"},
               [] { LegacyFolder{.config = R"({"tokenizer_class": "LlamaTokenizer"})"}.load(); });
}

TEST(LegacyFiles, TheClassDecidesTheSplitRule) {
  const Tokenizer qwen = LegacyFolder{.pieces = {"##", "12"}, .merges = "# #\n1 2\n"}.load();
  const std::string config = R"({"tokenizer_class": "GPT2Tokenizer"})";
  const Tokenizer gpt2 =
      LegacyFolder{.pieces = {"##", "12"}, .merges = "# #\n1 2\n", .config = config}.load();
  EXPECT_EQ(qwen.encode("12"), (Ids{'1', '2'}));
  EXPECT_EQ(gpt2.encode("12"), (Ids{257}));
}

}  // namespace
}  // namespace qgen
