// Whole texts against the ids that Hugging Face tokenizers gives (tools/reference/tokenizer_golden.py).

#include "tokenizer/support.h"

namespace qgen {
namespace {

using testing::golden;
using testing::golden_lines;
using testing::ids_of;
using testing::load;
using testing::read_file;

class GoldenIds : public ::testing::TestWithParam<const char*> {
 protected:
  [[nodiscard]] static std::filesystem::path file(const std::string& name) {
    return name == "tales" ? std::filesystem::path(QGEN_TALES_TOKENIZER) : golden(name + ".json");
  }
};

TEST_P(GoldenIds, EncodeAndDecodeAsTheReferenceDoes) {
  const std::string name = GetParam();
  const Tokenizer tokenizer = load(read_file(file(name)));
  const std::vector<Json> lines = golden_lines(name + ".jsonl");
  ASSERT_GE(lines.size(), name == "tales" ? 2000U : 300U);
  for (const Json& line : lines) {
    const std::string& text = *line.find("t")->as_string();
    const std::vector<TokenId> ids = ids_of(*line.find("i"));
    const std::vector<TokenId> plain = line.find("p") ? ids_of(*line.find("p")) : ids;
    EXPECT_EQ(tokenizer.encode(text, {.parse_special = true, .add_bos = true}), ids) << text;
    EXPECT_EQ(tokenizer.encode(text, {.parse_special = false, .add_bos = true}), plain) << text;
    const auto decoded = [&](const char* key) {
      return line.find(key) ? *line.find(key)->as_string() : text;
    };
    EXPECT_EQ(replace_invalid_utf8(tokenizer.decode(ids)), decoded("d"));
    EXPECT_EQ(replace_invalid_utf8(tokenizer.decode(ids, true)), decoded("s"));
    std::string joined;
    for (const TokenId id : ids) joined += tokenizer.bytes(id);
    EXPECT_EQ(joined, tokenizer.decode(ids));
  }
}

INSTANTIATE_TEST_SUITE_P(Tokenizers, GoldenIds,
                         ::testing::Values("tales", "gpt2", "llama3", "tekken", "smollm2", "o200k",
                                           "prefixed", "pieces_prefixed", "removed", "unknown", "added"),
                         [](const auto& tested) { return std::string(tested.param); });

}  // namespace
}  // namespace qgen
