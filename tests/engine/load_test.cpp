#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "qgen/base/error.h"
#include "qgen/engine/engine.h"
#include "support/files.h"

namespace qgen {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

/// A copy of the demonstration model that tests may damage.
class LoadTest : public testing::Test {
 protected:
  LoadTest() { fs::copy(test::tales_folder(), folder(), fs::copy_options::recursive); }

  [[nodiscard]] fs::path folder() const { return temp_.path() / "model"; }

  void replace(const std::string& file, const std::string& from, const std::string& to) {
    std::string text = test::read_file(folder() / file);
    const std::size_t at = text.find(from);
    ASSERT_NE(at, std::string::npos) << from;
    test::write_file(folder() / file, text.replace(at, from.size(), to));
  }

  std::string refusal(ErrorKind kind, const EngineOptions& options = {}) {
    try {
      (void)Engine::from_folder(folder(), options, Log());
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), kind) << error.what();
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << "one line";
      return error.what();
    }
    return "accepted";
  }

  test::TempFolder temp_;
};

TEST_F(LoadTest, ReadsTheDemonstrationModel) {
  const Engine engine = Engine::from_folder(folder(), {}, Log());
  EXPECT_EQ(engine.vocab(), 4096);
  EXPECT_EQ(engine.context(), 1024);
  EXPECT_EQ(engine.end_ids(), (std::vector<TokenId>{4093, 4095}));
  // 4096*256 embedding; a layer: q 256*256, k and v 128*256, o 256*256, three of 768*256, norms
  // 256+256+64+64.
  const std::int64_t layer = 2 * 256 * 256 + 2 * 128 * 256 + 3 * 768 * 256;
  EXPECT_EQ(engine.layer_parameters(), 6 * layer);
  EXPECT_EQ(engine.parameters(), 4096 * 256 + 6 * (layer + 640) + 256);
}

TEST(LoadExperts, CountsAllParametersAndThoseThatATokenMeets) {
  const Engine engine = Engine::from_folder(QGEN_TEST_DATA "/golden/models/qwen3_moe", {}, Log());
  // A layer: q 64*32, k and v 32*32, o 32*64, router 6*32; an expert three of 24*32; norms 32+32+16+16.
  const std::int64_t layer = 2 * 64 * 32 + 2 * 32 * 32 + 6 * 32, expert = 3 * 24 * 32;
  EXPECT_EQ(engine.layer_parameters(), 2 * (layer + 2 * expert));
  EXPECT_EQ(engine.parameters(), 2 * 272 * 32 + 2 * (layer + 6 * expert + 96) + 32);
}

TEST_F(LoadTest, NamesAFolderThatIsNotThere) {
  fs::remove_all(folder());
  EXPECT_THAT(refusal(ErrorKind::file), HasSubstr(folder().string() + ": no such file or directory"));
}

TEST_F(LoadTest, NamesAFileGivenAsFolder) {
  fs::remove_all(folder());
  test::write_file(folder(), "not a model");
  EXPECT_THAT(refusal(ErrorKind::unsupported), HasSubstr("it is a file"));
}

TEST_F(LoadTest, NamesEachMissingFile) {
  for (const char* name : {"config.json", "model.safetensors"}) {
    fs::rename(folder() / name, temp_.path() / name);
    EXPECT_THAT(refusal(ErrorKind::file), HasSubstr(name));
    fs::rename(temp_.path() / name, folder() / name);
  }
}

TEST_F(LoadTest, GenerationConfigIsOptional) {
  fs::remove(folder() / "generation_config.json");
  EXPECT_EQ(Engine::from_folder(folder(), {}, Log()).end_ids(), std::vector<TokenId>{4093});
}

TEST_F(LoadTest, NamesAnUnknownModelTypeWhateverItsOtherKeysHold) {
  test::write_file(folder() / "config.json", R"({"model_type": "mamba9\u001b[2J", "rope_parameters": 7})");
  const std::string message = refusal(ErrorKind::unsupported);
  EXPECT_THAT(message, HasSubstr("mamba9\\x1B[2J"));
  for (const char* supported : {"llama", "mistral", "qwen2", "qwen3"})
    EXPECT_THAT(message, HasSubstr(supported));
}

TEST_F(LoadTest, RefusesATokenizerLargerThanTheVocabulary) {
  replace("config.json", "\"vocab_size\": 4096", "\"vocab_size\": 4000");
  const std::string message = refusal(ErrorKind::file);
  EXPECT_THAT(message, HasSubstr("4096"));
  EXPECT_THAT(message, HasSubstr("4000"));
}

TEST_F(LoadTest, RefusesAnEndIdOutsideTheVocabulary) {
  replace("config.json", "\"eos_token_id\": 4093", "\"eos_token_id\": 5000");
  EXPECT_THAT(refusal(ErrorKind::file), HasSubstr("eos_token_id 5000 is outside the vocabulary of 4096"));
}

TEST_F(LoadTest, RefusesAContextBeyondTheModel) {
  EngineOptions options;
  options.context = 2000;
  EXPECT_THAT(refusal(ErrorKind::usage, options), HasSubstr("context size 2000 is out of range"));
  options.context = 7;
  EXPECT_EQ(Engine::from_folder(folder(), options, Log()).context(), 7);
}

TEST_F(LoadTest, NamesAWeightThatDoesNotFitTheConfig) {
  replace("config.json", "\"intermediate_size\": 768", "\"intermediate_size\": 512");
  EXPECT_THAT(refusal(ErrorKind::file), HasSubstr("gate_proj"));
}

}  // namespace
}  // namespace qgen
