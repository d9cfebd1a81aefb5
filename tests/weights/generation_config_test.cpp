#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "qgen/weights/model_config.h"
#include "support/error_of.h"

namespace qgen {
namespace {

using test::error_of;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

GenerationConfig parse(const std::string& json) {
  return parse_generation_config(json, "g.json");
}

std::string refusal(const std::string& json) {
  return error_of([&] { parse(json); });
}

TEST(GenerationConfig, ReadsPublishedFiles) {
  const GenerationConfig config = parse(
      R"({"bos_token_id": 151643, "do_sample": true, "eos_token_id": [151645, 151643], "pad_token_id": 151643,
          "temperature": 0.6, "top_k": 20, "top_p": 0.95, "min_p": 0.05, "repetition_penalty": 1.1,
          "max_new_tokens": 2048, "transformers_version": "4.51.0"})");
  EXPECT_EQ(config.do_sample, true);
  EXPECT_EQ(config.temperature, 0.6);
  EXPECT_EQ(config.top_k, 20);
  EXPECT_EQ(config.top_p, 0.95);
  EXPECT_EQ(config.min_p, 0.05);
  EXPECT_EQ(config.repetition_penalty, 1.1);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(151645, 151643));
}

TEST(GenerationConfig, LeavesAbsentAndNullKeysAbsent) {
  for (const char* json :
       {"{}", R"({"do_sample": null, "temperature": null, "top_k": null, "top_p": null, "min_p": null,
                  "repetition_penalty": null, "eos_token_id": null})"}) {
    const GenerationConfig config = parse(json);
    EXPECT_EQ(config.do_sample, std::nullopt);
    EXPECT_EQ(config.temperature, std::nullopt);
    EXPECT_EQ(config.top_k, std::nullopt);
    EXPECT_EQ(config.top_p, std::nullopt);
    EXPECT_EQ(config.min_p, std::nullopt);
    EXPECT_EQ(config.repetition_penalty, std::nullopt);
    EXPECT_THAT(config.eos_token_ids, IsEmpty());
  }
}

TEST(GenerationConfig, TakesIntegersWhereNumbersAreMeantAndValuesThatMeanOff) {
  const GenerationConfig config = parse(R"({"temperature": 0, "top_p": 1, "top_k": -1, "eos_token_id": 2})");
  EXPECT_EQ(config.temperature, 0);
  EXPECT_EQ(config.top_p, 1);
  EXPECT_EQ(config.top_k, -1);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(2));
}

TEST(GenerationConfig, NamesTheKeyOfWhatMakesNoSense) {
  const std::vector<std::pair<std::string, std::string>> cases{
      {R"({"temperature": "0.6"})", "temperature: a number not below 0 expected, \"0.6\" found"},
      {R"({"temperature": -0.5})", "temperature: a number not below 0 expected, -0.5 found"},
      {R"({"top_p": 1.5})", "top_p: a number from 0 to 1 expected, 1.5 found"},
      {R"({"min_p": -1})", "min_p"},
      {R"({"top_k": 20.5})", "top_k: an integer from -1 to 2147483647 expected, 20.5 found"},
      {R"({"top_k": -2})", "top_k"},
      {R"({"repetition_penalty": 0})", "repetition_penalty: a positive number expected, 0 found"},
      {R"({"do_sample": "true"})", "do_sample"},
      {R"({"eos_token_id": [1, null]})", "eos_token_id"},
      {R"({"eos_token_id": {"id": 1}})", "eos_token_id"},
      {"3", "an object expected, 3 found"},
  };
  for (const auto& [json, part] : cases) {
    const std::string message = refusal(json);
    EXPECT_THAT(message, HasSubstr("g.json: ")) << json;
    EXPECT_THAT(message, HasSubstr(part)) << json;
  }
}

}  // namespace
}  // namespace qgen
