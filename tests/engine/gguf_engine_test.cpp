// GGUF files as whole models; their logits are compared in tests/golden.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "qgen/engine/engine.h"
#include "support/error_of.h"
#include "support/files.h"

namespace qgen {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

fs::path golden(const std::string& name) {
  return fs::path(QGEN_TEST_DATA) / "golden" / "gguf" / name;
}

TEST(GgufEngine, BringsTokenizerSamplingAndEndTokens) {
  const Engine engine = Engine::from_gguf(golden("qwen2.gguf"), {}, Log());
  const Engine folder = Engine::from_folder(fs::path(QGEN_TEST_DATA) / "golden/models/qwen2", {}, Log());
  EXPECT_EQ(engine.config().model_type, "qwen2");
  EXPECT_EQ(engine.parameters(), folder.parameters());
  EXPECT_EQ(engine.context(), folder.context());
  EXPECT_EQ(engine.end_ids(), folder.end_ids());
  EXPECT_EQ(engine.allowed(), folder.allowed());  // padded rows stand for nothing in either
  EXPECT_EQ(engine.generation_config().temperature, 0.6);
  EXPECT_EQ(engine.generation_config().top_k, 20);
  const std::string text = "The miller's daughter, 12 e\u0301 <|endoftext|>";
  EXPECT_EQ(engine.tokenizer().encode(text), folder.tokenizer().encode(text));
  EXPECT_FALSE(engine.tokenizer().chat_template().empty());
}

TEST(GgufEngine, TheTokenizerIsReadWithoutTensors) {
  const test::TempFolder folder;
  const std::string whole = test::read_file(golden("qwen2.gguf"));
  const fs::path cut = folder.path() / "cut.gguf";
  test::write_file(cut, std::string_view(whole).substr(0, whole.size() - 100));
  EXPECT_EQ(read_gguf_tokenizer(cut).encode("the"), read_gguf_tokenizer(golden("qwen2.gguf")).encode("the"));
  EXPECT_THAT(test::error_of([&] { (void)Engine::from_gguf(cut, {}, Log()); }),
              AllOf(HasSubstr("cut.gguf: truncated"), HasSubstr("bytes missing")));
}

}  // namespace
}  // namespace qgen
