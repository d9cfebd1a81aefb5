// The program on whole models against Hugging Face transformers; see tests/golden/model_test.cpp for the
// files.
#include <gmock/gmock.h>

#include "cli/command.h"

namespace qgen::test {
namespace {

using nlohmann::json;

class GoldenModels : public ::testing::TestWithParam<std::string> {
 protected:
  [[nodiscard]] static std::string folder() {
    return std::string(QGEN_TEST_DATA) + "/golden/models/" + GetParam();
  }
  [[nodiscard]] static json expected() { return json::parse(read_file(folder() + "/expected.json")); }
};

TEST_P(GoldenModels, PromptHasTheReferenceIds) {
  const json reference = expected();
  std::string ids;
  for (const json& id : reference["prompt"]) ids += (ids.empty() ? "" : " ") + id.dump();
  EXPECT_EQ(qgen({"tokenize", "-m", folder(), "--ids", "-p", reference["text"]}).out, ids + "\n");
}

TEST_P(GoldenModels, GreedyReplyAndItsProbabilitiesAreThoseOfTheReference) {
  const json reference = expected();
  const std::size_t count = reference["reply"].size();
  const json reply =
      json_of(qgen({"-m", folder(), "-p", reference["text"], "-n", std::to_string(count), "--greedy",
                    "--ignore-eos", "--kv", "f32", "--json", "--logprobs", "100"}));
  ASSERT_EQ(reply["tokens"], reference["reply"]);
  EXPECT_EQ(reply["usage"]["prompt_tokens"], reference["prompt"].size());

  const json& run = reference["runs"][0];
  const json& noise = reference["noise"];
  // Logit and log-sum-exp each stray by this much at most.
  const double tolerance = 2 * 2 * (noise["f32"].get<double>() + noise["rounded_inputs"].get<double>());
  std::size_t compared = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t position = reference["prompt"].size() - 1 + i;
    for (const json& token : reply["logprobs"]["content"][i]["top_logprobs"]) {
      const auto column = std::ranges::find(reference["columns"], token["id"]);
      if (column == reference["columns"].end()) continue;
      const auto index = static_cast<std::size_t>(column - reference["columns"].begin());
      const double logprob =
          run["logits"][position][index].get<double>() - run["logsumexp"][position].get<double>();
      EXPECT_NEAR(token["logprob"].get<double>(), logprob, tolerance) << "reply position " << i;
      ++compared;
    }
  }
  EXPECT_GT(compared, 10U);
}

INSTANTIATE_TEST_SUITE_P(Folders, GoldenModels,
                         ::testing::Values("llama3", "llama_linear_v4", "mistral", "qwen2",
                                           "qwen3_bf16_gqa2_tied", "qwen3_bias", "qwen3_f16_gqa4",
                                           "qwen3_f32_gqa1", "qwen3_sharded", "qwen3_yarn_v4",
                                           "qwen3_yarn_v5"));

}  // namespace
}  // namespace qgen::test
