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
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

ModelConfig parse(const std::string& json) {
  return parse_model_config(json, "m/config.json");
}

std::string refusal(const std::string& json, ErrorKind kind = ErrorKind::file) {
  return error_of([&] { parse(json); }, kind);
}

TEST(ModelConfig, ReadsTheOlderDialect) {
  const ModelConfig config = parse(R"({
    "architectures": ["Qwen3ForCausalLM"], "attention_bias": false, "attention_dropout": 0.0,
    "eos_token_id": 151645, "head_dim": 128, "hidden_act": "silu", "hidden_size": 1024,
    "intermediate_size": 3072, "max_position_embeddings": 40960, "max_window_layers": 28, "model_type": "qwen3",
    "num_attention_heads": 16, "num_hidden_layers": 28, "num_key_value_heads": 8, "rms_norm_eps": 1e-06,
    "rope_scaling": null, "rope_theta": 1000000, "sliding_window": null, "tie_word_embeddings": true,
    "torch_dtype": "bfloat16", "transformers_version": "4.51.0", "use_sliding_window": false, "vocab_size": 151936})");
  EXPECT_EQ(config.source, "m/config.json");
  EXPECT_EQ(config.model_type, "qwen3");
  EXPECT_THAT(config.architectures, ElementsAre("Qwen3ForCausalLM"));
  EXPECT_EQ(config.hidden_size, 1024);
  EXPECT_EQ(config.num_hidden_layers, 28);
  EXPECT_EQ(config.num_attention_heads, 16);
  EXPECT_EQ(config.num_key_value_heads, 8);
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_EQ(config.intermediate_size, 3072);
  EXPECT_EQ(config.vocab_size, 151936);
  EXPECT_EQ(config.max_position_embeddings, 40960);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
  EXPECT_EQ(config.tie_word_embeddings, true);
  EXPECT_EQ(config.attention_bias, false);
  EXPECT_EQ(config.use_sliding_window, false);
  EXPECT_EQ(config.sliding_window, 0);
  EXPECT_EQ(config.max_window_layers, 28);
  EXPECT_EQ(config.rope.type, "default");
  EXPECT_EQ(config.rope.theta, 1e6);
  EXPECT_EQ(config.partial_rotary_factor, 1);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(151645));
  EXPECT_EQ(config.quantization, "");
}

TEST(ModelConfig, ReadsTheNewerDialect) {
  const ModelConfig config = parse(R"({
    "dtype": "bfloat16", "eos_token_id": [4093, 4095], "head_dim": null, "model_type": "llama",
    "layer_types": ["full_attention", "sliding_attention"], "sliding_window": 64, "use_sliding_window": true,
    "rope_parameters": {"rope_type": "llama3", "rope_theta": 500000.0, "factor": 8, "low_freq_factor": 1.5,
      "high_freq_factor": 4.5, "original_max_position_embeddings": 8192, "partial_rotary_factor": 0.5,
      "attention_factor": null}})");
  EXPECT_EQ(config.head_dim, 0);
  EXPECT_THAT(config.layer_types, ElementsAre("full_attention", "sliding_attention"));
  EXPECT_EQ(config.sliding_window, 64);
  EXPECT_EQ(config.use_sliding_window, true);
  EXPECT_EQ(config.rope.type, "llama3");
  EXPECT_EQ(config.rope.theta, 500000);
  EXPECT_EQ(config.rope.factor, 8);
  EXPECT_EQ(config.rope.low_freq_factor, 1.5);
  EXPECT_EQ(config.rope.high_freq_factor, 4.5);
  EXPECT_EQ(config.rope.original_max_position_embeddings, 8192);
  EXPECT_EQ(config.rope.attention_factor, std::nullopt);
  EXPECT_EQ(config.partial_rotary_factor, 0.5);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(4093, 4095));
}

TEST(ModelConfig, LeavesWhatTheFileDoesNotSayUnsaid) {
  const ModelConfig config = parse("{}");
  EXPECT_EQ(config.model_type, "");
  EXPECT_EQ(config.hidden_act, "silu");
  EXPECT_EQ(config.hidden_size, 0);
  EXPECT_EQ(config.num_key_value_heads, 0);
  EXPECT_EQ(config.rms_norm_eps, 0);
  EXPECT_EQ(config.rope.theta, 0);
  EXPECT_EQ(config.tie_word_embeddings, std::nullopt);
  EXPECT_EQ(config.sliding_window, std::nullopt);
  EXPECT_THAT(config.eos_token_ids, IsEmpty());
}

TEST(ModelConfig, ReadsEveryYarnKeyUnderEitherSpelling) {
  const std::string block =
      R"("yarn", "factor": 4.0, "beta_fast": 16, "beta_slow": 2, "mscale": 0.7, "mscale_all_dim": 0.8,
         "attention_factor": 1.25, "truncate": false, "original_max_position_embeddings": 32768})";
  for (const std::string& json :
       {R"({"rope_theta": 10000, "rope_scaling": {"type": )" + block + "}",
        R"({"rope_theta": 10000, "rope_scaling": {"rope_type": )" + block + "}",
        R"({"rope_parameters": {"rope_theta": 10000, "rope_type": )" + block + "}",
        R"({"rope_theta": 10000.0, "rope_parameters": {"type": "yarn", "rope_theta": 1e4, "rope_type": )" +
            block + R"(, "rope_scaling": {}})"}) {
    const RopeConfig rope = parse(json).rope;
    EXPECT_EQ(rope.type, "yarn");
    EXPECT_EQ(rope.theta, 10000);
    EXPECT_EQ(rope.factor, 4);
    EXPECT_EQ(rope.beta_fast, 16);
    EXPECT_EQ(rope.beta_slow, 2);
    EXPECT_EQ(rope.mscale, 0.7);
    EXPECT_EQ(rope.mscale_all_dim, 0.8);
    EXPECT_EQ(rope.attention_factor, 1.25);
    EXPECT_FALSE(rope.truncate);
    EXPECT_EQ(rope.original_max_position_embeddings, 32768);
  }
}

TEST(ModelConfig, RefusesRotarySettingsThatContradictEachOther) {
  EXPECT_THAT(refusal(R"({"rope_theta": 10000, "rope_parameters": {"rope_theta": 1000000}})"),
              AllOf(HasSubstr("rope_theta is stated twice"), HasSubstr("10000"), HasSubstr("1000000")));
  EXPECT_THAT(refusal(R"({"rope_scaling": {"type": "linear", "rope_type": "yarn"}})"),
              AllOf(HasSubstr("rope_type"), HasSubstr("\"linear\""), HasSubstr("\"yarn\"")));
  EXPECT_THAT(refusal(R"({"rope_scaling": {"factor": 2}, "rope_parameters": {"factor": 4}})"),
              HasSubstr("factor is stated twice"));
  EXPECT_THAT(
      refusal(R"({"rope_parameters": {"full_attention": {"rope_theta": 1}}})", ErrorKind::unsupported),
      AllOf(HasSubstr("rope_parameters"), HasSubstr("full_attention")));
}

TEST(ModelConfig, NamesKeyExpectedAndFoundForWhatMakesNoSense) {
  const std::vector<std::pair<std::string, std::vector<std::string>>> cases{
      {R"({"hidden_size": 0})", {"hidden_size", "1 to 2147483648", "0 found"}},
      {R"({"hidden_size": -5})", {"hidden_size", "-5 found"}},
      {R"({"hidden_size": 2147483649})", {"hidden_size", "2147483649 found"}},
      {R"({"hidden_size": 18446744073709551615})", {"hidden_size", "18446744073709551615 found"}},
      {R"({"hidden_size": 64.0})", {"hidden_size", "64"}},
      {R"({"hidden_size": "64"})", {"hidden_size", "\"64\" found"}},
      {R"({"hidden_size": true})", {"hidden_size", "true found"}},
      {R"({"hidden_size": [64]})", {"hidden_size", "array found"}},
      {R"({"num_hidden_layers": 0})", {"num_hidden_layers"}},
      {R"({"num_attention_heads": 0})", {"num_attention_heads"}},
      {R"({"num_key_value_heads": 0})", {"num_key_value_heads"}},
      {R"({"head_dim": 0})", {"head_dim"}},
      {R"({"intermediate_size": 0})", {"intermediate_size"}},
      {R"({"vocab_size": 0})", {"vocab_size"}},
      {R"({"max_position_embeddings": 0})", {"max_position_embeddings"}},
      {R"({"rms_norm_eps": 0})", {"rms_norm_eps", "above 0", "0 found"}},
      {R"({"rms_norm_eps": -1e-6})", {"rms_norm_eps", "-1e-06 found"}},
      {R"({"rms_norm_eps": 1})", {"rms_norm_eps", "below 1", "1 found"}},
      {R"({"rms_norm_eps": "1e-6"})", {"rms_norm_eps", "\"1e-6\" found"}},
      {R"({"rope_theta": 0})", {"rope_theta", "positive"}},
      {R"({"rope_theta": -10000.5})", {"rope_theta", "-10000.5 found"}},
      {R"({"rope_scaling": "yarn"})", {"rope_scaling", "an object", "\"yarn\" found"}},
      {R"({"rope_scaling": {"type": 3}})", {"rope_type", "a string"}},
      {R"({"rope_scaling": {"type": "yarn", "factor": 0}})", {"factor", "positive"}},
      {R"({"rope_scaling": {"type": "yarn", "factor": "4"}})", {"factor", "\"4\" found"}},
      {R"({"partial_rotary_factor": 1.5})", {"partial_rotary_factor", "1.5 found"}},
      {R"({"tie_word_embeddings": 1})", {"tie_word_embeddings", "true or false", "1 found"}},
      {R"({"attention_bias": "no"})", {"attention_bias"}},
      {R"({"mlp_bias": 0})", {"mlp_bias"}},
      {R"({"use_sliding_window": 0})", {"use_sliding_window"}},
      {R"({"sliding_window": 0})", {"sliding_window"}},
      {R"({"sliding_window": "4096"})", {"sliding_window"}},
      {R"({"layer_types": "full_attention"})", {"layer_types", "a list"}},
      {R"({"layer_types": [1]})", {"layer_types", "1 found"}},
      {R"({"num_experts": 0})", {"num_experts", "0 found"}},
      {R"({"num_local_experts": "8"})", {"num_local_experts", "\"8\" found"}},
      {R"({"num_experts_per_tok": -1})", {"num_experts_per_tok", "-1 found"}},
      {R"({"moe_intermediate_size": 2147483649})", {"moe_intermediate_size", "2147483649 found"}},
      {R"({"norm_topk_prob": 1})", {"norm_topk_prob", "true or false"}},
      {R"({"decoder_sparse_step": 0})", {"decoder_sparse_step", "0 found"}},
      {R"({"mlp_only_layers": 3})", {"mlp_only_layers", "a list of integers expected, 3 found"}},
      {R"({"mlp_only_layers": [-1]})", {"mlp_only_layers", "-1 found"}},
      {R"({"model_type": 3})", {"model_type", "a string"}},
      {R"({"hidden_act": 3})", {"hidden_act"}},
      {R"({"eos_token_id": "end"})", {"eos_token_id", "\"end\" found"}},
      {R"({"eos_token_id": -1})", {"eos_token_id", "-1 found"}},
      {R"({"eos_token_id": [1, 2147483648]})", {"eos_token_id", "2147483648 found"}},
      {R"({"eos_token_id": [[1]]})", {"eos_token_id", "array found"}},
      {R"({"quantization_config": true})", {"quantization_config"}},
      {"[]", {"an object expected, array found"}},
      {"", {"malformed JSON"}},
      {R"({"rms_norm_eps": 1e999})", {"malformed JSON"}},
      {R"({"rms_norm_eps": NaN})", {"malformed JSON"}},
      {R"({"vocab_size": 1, "vocab_size": 2})", {"\"vocab_size\" occurs twice"}},
      {std::string(100000, '['), {"nested deeper"}},
  };
  for (const auto& [json, parts] : cases) {
    const std::string message = refusal(json);
    EXPECT_THAT(message, HasSubstr("m/config.json: ")) << json;
    for (const std::string& part : parts) EXPECT_THAT(message, HasSubstr(part)) << json;
  }
}

TEST(ModelConfig, TakesTheLargestAndSmallestSaneValues) {
  const ModelConfig config = parse(R"({"vocab_size": 2147483648, "hidden_size": 1, "rms_norm_eps": 0.999,
                                       "rope_theta": 1e300, "eos_token_id": [0, 2147483647]})");
  EXPECT_EQ(config.vocab_size, std::int64_t{1} << 31);
  EXPECT_EQ(config.hidden_size, 1);
  EXPECT_EQ(config.rms_norm_eps, 0.999);
  EXPECT_EQ(config.rope.theta, 1e300);
  EXPECT_THAT(config.eos_token_ids, ElementsAre(0, 2147483647));
}

TEST(ModelConfig, ReadsTheSizesOfExpertsInBothDialects) {
  for (const char* key : {"num_experts", "num_local_experts"}) {
    const ModelConfig config = parse(R"({"num_experts_per_tok": 8, "moe_intermediate_size": 768,
        "norm_topk_prob": true, "decoder_sparse_step": 2, "mlp_only_layers": [3, 0], ")" +
                                     std::string(key) + "\": 128}");
    EXPECT_EQ(config.num_experts, 128);
    EXPECT_EQ(config.num_experts_per_tok, 8);
    EXPECT_EQ(config.moe_intermediate_size, 768);
    EXPECT_EQ(config.norm_topk_prob, true);
    EXPECT_EQ(config.decoder_sparse_step, 2);
    EXPECT_THAT(config.mlp_only_layers, ElementsAre(3, 0));
  }
  const ModelConfig silent = parse(R"({"num_local_experts": null, "mlp_only_layers": null})");
  EXPECT_EQ(silent.num_experts, 0);
  EXPECT_FALSE(silent.norm_topk_prob);
  EXPECT_FALSE(silent.decoder_sparse_step);
  EXPECT_TRUE(silent.mlp_only_layers.empty());
  EXPECT_EQ(parse(R"({"num_experts": 4, "num_local_experts": 4})").num_experts, 4);
  EXPECT_THAT(refusal(R"({"num_experts": 4, "num_local_experts": 5})"),
              AllOf(HasSubstr("num_experts is 4"), HasSubstr("num_local_experts is 5")));
}

TEST(ModelConfig, NamesTheQuantization) {
  EXPECT_EQ(parse(R"({"quantization_config": {"quant_method": "fp8"}})").quantization, "fp8");
  EXPECT_EQ(parse(R"({"quantization_config": {"bits": 4}})").quantization, "unnamed");
  EXPECT_EQ(parse(R"({"quantization_config": null})").quantization, "");
}

TEST(ModelConfig, EscapesAndShortensWhatItQuotes) {
  const std::string message = refusal(R"({"eos_token_id": "\u001b[2J)" + std::string(5000, 'x') + "\"}");
  EXPECT_THAT(message, AllOf(HasSubstr("\\x1B[2Jxxx"), Not(HasSubstr("\x1b"))));
  EXPECT_LT(message.size(), 300u);
}

TEST(ModelConfig, TypeCanBeReadBeforeTheRest) {
  EXPECT_EQ(parse_model_type(R"({"hidden_size": [1, 2], "model_type": "gemma9"})", "c"), "gemma9");
  EXPECT_EQ(parse_model_type("{}", "c"), "");
  EXPECT_THAT(error_of([] { parse_model_type(R"({"model_type": 1})", "c"); }), HasSubstr("c: model_type"));
}

}  // namespace
}  // namespace qgen
