#include "models/rope.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "qgen/base/json.h"
#include "qgen/base/mapped_file.h"
#include "support/error_of.h"

namespace qgen {
namespace {

using test::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

ModelConfig config_with(const std::string& members) {
  return parse_model_config(R"({"max_position_embeddings": 4096, )" + members + "}", "config.json");
}

std::string refusal(const std::string& members, ErrorKind kind = ErrorKind::file) {
  return error_of([&] { make_rope(config_with(members), 64); }, kind);
}

float ulp(float value) {
  return std::nextafter(value, std::numeric_limits<float>::infinity()) - value;
}

class RopeGolden : public ::testing::Test {
 protected:
  RopeGolden()
      : file_(QGEN_TEST_DATA "/models/rope_golden.json"),
        cases_(parse_json(as_text(file_.bytes()), "golden")) {}

  MappedFile file_;
  Json cases_;
};

// The reference computes powers with a vectorised function that is off by a unit in the last place here and
// there; everything else is done in the same steps.
TEST_F(RopeGolden, FrequenciesAreThoseOfTheReferenceToTwoUnitsInTheLastPlace) {
  std::size_t equal = 0, count = 0;
  for (const auto& [name, golden] : *cases_.as_object()) {
    const ModelConfig config = parse_model_config(*golden.find("config")->as_string(), name);
    const PlanRope rope = make_rope(config, config.head_dim);
    const JsonArray& expected = *golden.find("inv_freq")->as_array();
    ASSERT_EQ(rope.inv_freq.size(), expected.size()) << name;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto value = static_cast<float>(*expected[i].as_double());
      EXPECT_LE(std::abs(rope.inv_freq[i] - value), 2 * ulp(value)) << name << " pair " << i;
      if (rope.inv_freq[i] == value) ++equal;
      ++count;
    }
    EXPECT_FLOAT_EQ(rope.scale, static_cast<float>(*golden.find("scale")->as_double())) << name;
    EXPECT_EQ(rope.pairs, RopePairs::half_split);
  }
  EXPECT_GT(count, 700u);
  EXPECT_GE(equal * 100, count * 97) << equal << " of " << count;
}

TEST_F(RopeGolden, BothSpellingsAndBothDialectsOfYarnAreOne) {
  const auto rope_of = [&](std::string_view name) {
    const ModelConfig config = parse_model_config(*cases_.find(name)->find("config")->as_string(), name);
    return make_rope(config, config.head_dim);
  };
  const PlanRope one = rope_of("yarn_type");
  for (const char* other : {"yarn_rope_type", "yarn_new_dialect"}) {
    EXPECT_EQ(rope_of(other).inv_freq, one.inv_freq);
    EXPECT_EQ(rope_of(other).scale, one.scale);
  }
  EXPECT_NE(rope_of("qwen3").inv_freq, one.inv_freq);
  EXPECT_GT(one.scale, 1.1f);
}

TEST(Rope, RefusesUnknownTypesByName) {
  for (const char* type : {"dynamic", "longrope", "su", "mrope", "YARN", "proportional"}) {
    EXPECT_THAT(refusal(R"("rope_scaling": {"type": ")" + std::string(type) + R"(", "factor": 2})",
                        ErrorKind::unsupported),
                AllOf(HasSubstr("config.json"), HasSubstr("rope_type " + std::string(type)),
                      HasSubstr("default, linear, llama3 and yarn")));
  }
}

TEST(Rope, NamesTheKeyThatATypeNeeds) {
  EXPECT_THAT(refusal(R"("rope_scaling": {"type": "linear"})"),
              AllOf(HasSubstr("factor: missing"), HasSubstr("linear")));
  EXPECT_THAT(refusal(R"("rope_scaling": {"type": "yarn"})"), HasSubstr("factor: missing"));
  EXPECT_THAT(refusal(R"("rope_scaling": {"type": "llama3", "factor": 8, "low_freq_factor": 1})"),
              HasSubstr("high_freq_factor: missing"));
  EXPECT_THAT(refusal(R"("rope_scaling": {"type": "llama3", "factor": 8, "high_freq_factor": 1})"),
              HasSubstr("low_freq_factor: missing"));
  const ModelConfig bare = parse_model_config(R"({"rope_scaling": {"type": "yarn", "factor": 2}})", "c");
  EXPECT_THAT(error_of([&] { make_rope(bare, 64); }), HasSubstr("original_max_position_embeddings: missing"));
}

TEST(Rope, RefusesAFactorThatNoTypeWouldUse) {
  EXPECT_THAT(refusal(R"("rope_scaling": {"factor": 4.0})"), HasSubstr("rope_type"));
  EXPECT_EQ(
      make_rope(config_with(R"("rope_scaling": {"type": "default", "factor": 1.0})"), 64).inv_freq.size(),
      32u);
}

TEST(Rope, RefusesSettingsFromWhichNothingCanBeComputed) {
  EXPECT_THAT(
      refusal(
          R"("rope_scaling": {"type": "llama3", "factor": 8, "low_freq_factor": 4, "high_freq_factor": 4})"),
      HasSubstr("high_freq_factor"));
  EXPECT_THAT(refusal(R"("rope_theta": 1e-300)"), HasSubstr("not finite"));
  EXPECT_THAT(
      refusal(R"("rope_theta": 1, "rope_scaling": {"type": "yarn", "factor": 1e300, "attention_factor": 1e300,
                         "original_max_position_embeddings": 64})"),
      HasSubstr("not finite"));
}

TEST(Rope, DividesFrequenciesAndPairsNeighboursWhereAsked) {
  ModelConfig config = config_with(R"("rope_theta": 10000)");
  const PlanRope plain = make_rope(config, 8);
  config.rope.frequency_divisors = {1, 2, 4, 8};
  config.rope.adjacent_pairs = true;
  const PlanRope divided = make_rope(config, 8);
  EXPECT_EQ(plain.pairs, RopePairs::half_split);
  EXPECT_EQ(divided.pairs, RopePairs::adjacent);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(divided.inv_freq[i], plain.inv_freq[i] / config.rope.frequency_divisors[i]);
  }
  EXPECT_THAT(error_of([&] { make_rope(config, 16); }), HasSubstr("8 divisors expected, 4 found"));
}

// The divisors are those of tools/reference/gguf_models.py, which computes them as converters to GGUF do.
TEST(Rope, DivisorsGiveTheFrequenciesOfLlama3) {
  const ModelConfig llama3 = config_with(
      R"("rope_theta": 500000, "rope_scaling": {"rope_type": "llama3", "factor": 8, "low_freq_factor": 1,
         "high_freq_factor": 4, "original_max_position_embeddings": 64})");
  ModelConfig divided = config_with(R"("rope_theta": 500000)");
  divided.rope.frequency_divisors = {1, 2.4422593f, 8, 8, 8, 8, 8, 8};
  const PlanRope expected = make_rope(llama3, 16);
  const PlanRope rope = make_rope(divided, 16);
  for (std::size_t i = 0; i < 8; ++i) {
    EXPECT_LE(std::abs(rope.inv_freq[i] - expected.inv_freq[i]), 4 * ulp(expected.inv_freq[i])) << i;
  }
}

TEST(Rope, YarnStretchesAContextThatTheConfigStatesUnstretched) {
  const auto context = [](const std::string& scaling, std::int64_t stated) {
    return rope_context(config_with(R"("rope_scaling": )" + scaling), stated);
  };
  const std::string yarn =
      R"({"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32768})";
  EXPECT_EQ(context(yarn, 40960), 131072);
  EXPECT_EQ(context(yarn, 131072), 131072);
  EXPECT_EQ(context(yarn, 262144), 262144);
  EXPECT_EQ(context(R"({"rope_type": "yarn", "factor": 4.0})", 4096), 4096);
  EXPECT_EQ(context(R"({"rope_type": "yarn", "factor": 1e300, "original_max_position_embeddings": 2})", 4096),
            std::int64_t{1} << 31);
  EXPECT_EQ(context("null", 4096), 4096);
}

}  // namespace
}  // namespace qgen
