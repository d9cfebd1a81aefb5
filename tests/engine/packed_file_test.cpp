// Weights kept in the form that the kernels read: used where they are those of the model, never else.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <chrono>
#include <string>
#include <vector>

#include "qgen/base/error.h"
#include "qgen/engine/engine.h"
#include "support/files.h"

namespace qgen {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

class PackedFileTest : public testing::Test {
 protected:
  PackedFileTest() { fs::copy(test::tales_folder(), model(), fs::copy_options::recursive); }

  [[nodiscard]] fs::path model() const { return temp_.path() / "model"; }
  [[nodiscard]] fs::path packed() const { return temp_.path() / "packed"; }

  [[nodiscard]] Engine load(const std::string& weights, const fs::path& packed) {
    EngineOptions options;
    options.device_options.threads = 2;
    options.device_options.weights = weights;
    options.packed = packed;
    const Log log(LogLevel::warning, [this](std::string_view line) { warnings_ += line; });
    return Engine::from_folder(model(), options, log);
  }

  /// Loads with the file; true where that left it as it was. In any case the logits must be the right ones.
  [[nodiscard]] bool used(const std::string& weights) {
    const fs::file_time_type long_ago = fs::file_time_type::clock::now() - std::chrono::hours(1);
    fs::last_write_time(packed(), long_ago);
    expect_right(load(weights, packed()), weights);
    return fs::last_write_time(packed()) == long_ago;
  }

  void expect_right(const Engine& engine, const std::string& weights) {
    EXPECT_EQ(bits(engine), bits(load(weights, {})));
  }

  static std::vector<std::uint32_t> bits(const Engine& engine) {
    const std::vector<TokenId> tokens{1, 40, 700, 9, 2000};
    std::vector<std::uint32_t> result;
    Session session = engine.new_session();
    for (const float value : session.feed(tokens, Want::last).values) {
      result.push_back(std::bit_cast<std::uint32_t>(value));
    }
    return result;
  }

  test::TempFolder temp_;
  std::string warnings_;
};

TEST_F(PackedFileTest, IsWrittenOnceAndThenUsed) {
  for (const char* weights : {"auto", "bf16", "q8", "q4"}) {
    fs::remove(packed());
    expect_right(load(weights, packed()), weights);
    ASSERT_TRUE(fs::exists(packed())) << weights;
    EXPECT_TRUE(used(weights)) << weights;
  }
  EXPECT_EQ(warnings_, "");
}

TEST_F(PackedFileTest, IsTheMemoryThatStepsRead) {
  (void)load("q8", packed());
  const std::string before = test::read_file(packed());
  std::vector<std::uint32_t> right;
  {
    const Engine engine = load("q8", packed());
    const Bytes held = engine.executor().packed_weights();
    EXPECT_EQ(before.substr(before.size() - held.size()), as_text(held));
    right = bits(engine);
  }
  // Other numbers beyond those that are compared give another text: nothing was packed anew.
  std::string other = before;
  other[other.size() - 5000] ^= 0x55;
  test::write_file(packed(), other);
  EXPECT_NE(bits(load("q8", packed())), right);
}

TEST_F(PackedFileTest, IsReplacedWhereTheWeightsAreHeldOtherwise) {
  (void)load("q8", packed());
  EXPECT_FALSE(used("q4"));
  EXPECT_TRUE(used("q4"));
  EXPECT_FALSE(used("q8"));
}

TEST_F(PackedFileTest, IsReplacedWhereTheModelHasChanged) {
  (void)load("q8", packed());
  const fs::path file = model() / "model.safetensors";
  fs::last_write_time(file, fs::last_write_time(file) + std::chrono::seconds(2));
  EXPECT_FALSE(used("q8"));
  EXPECT_TRUE(used("q8"));
}

TEST_F(PackedFileTest, IsReplacedWhereItsNumbersAreNotTheModels) {
  (void)load("q8", packed());
  const std::string whole = test::read_file(packed());
  std::string damaged = whole;
  const std::size_t begin = whole.size() - load("q8", packed()).executor().packed_weights().size();
  damaged[begin + 7] ^= 1;  // in the first panel
  for (const std::string& contents : {damaged, whole.substr(0, whole.size() - 1), whole + "x",
                                      whole.substr(0, begin), whole.substr(0, 30)}) {
    test::write_file(packed(), contents);
    EXPECT_FALSE(used("q8")) << contents.size();
    EXPECT_EQ(test::read_file(packed()), whole);
  }
}

TEST_F(PackedFileTest, IsNeverWrittenOverAnotherFile) {
  for (const std::string& contents : {std::string("a letter"), std::string()}) {
    test::write_file(packed(), contents);
    try {
      (void)load("q8", packed());
      ADD_FAILURE() << "accepted";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::file);
      EXPECT_THAT(error.what(), HasSubstr("expected a file of packed weights"));
    }
    EXPECT_EQ(test::read_file(packed()), contents);
  }
}

TEST_F(PackedFileTest, IsDoneWithoutWhereItCannotBeWritten) {
  const fs::path nowhere = temp_.path() / "no" / "folder" / "packed";
  expect_right(load("q8", nowhere), "q8");
  EXPECT_THAT(warnings_, HasSubstr("packed weights are not kept"));
}

TEST_F(PackedFileTest, IsRefusedWhereTheDevicePacksNothing) {
  EngineOptions options;
  options.device = "reference";
  options.packed = packed();
  try {
    (void)Engine::from_folder(model(), options, Log());
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
  }
}

TEST(PackedExperts, AreKeptToo) {
  const test::TempFolder temp;
  EngineOptions options;
  options.packed = temp.path() / "packed";
  std::vector<std::string> texts;
  for (int i = 0; i < 2; ++i) {
    const Engine engine = Engine::from_folder(QGEN_TEST_DATA "/golden/models/qwen3_moe", options, Log());
    texts.emplace_back(as_text(engine.executor().packed_weights()));
  }
  EXPECT_EQ(texts[0], texts[1]);
}

}  // namespace
}  // namespace qgen
