#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <string>

#include "qgen/weights/gguf.h"
#include "support/error_of.h"
#include "support/gguf_bytes.h"

namespace qgen {
namespace {

using test::error_of;
using test::gguf_config;
using test::GgufBytes;
using test::GgufWriter;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

GgufWriter heads(GgufWriter file, const std::string& architecture, std::uint32_t q = 4,
                 std::uint32_t kv = 2) {
  file.u32(architecture + ".attention.head_count", q).u32(architecture + ".attention.head_count_kv", kv);
  return file;
}

GgufWriter qwen3() {
  return heads(gguf_config("qwen3"), "qwen3").zeros("token_embd.weight", {16, 32});
}

ModelConfig config_of(const GgufWriter& writer) {
  const GgufBytes file(writer.file());
  return gguf_model_config(file.open());
}

std::string refusal(const GgufWriter& writer, ErrorKind kind = ErrorKind::file) {
  return error_of([&] { (void)config_of(writer); }, kind);
}

TEST(GgufConfig, TakesEverythingFromTheFile) {
  const ModelConfig config =
      config_of(qwen3().u32("qwen3.attention.key_length", 8).f32("qwen3.rope.freq_base", 1e6f));
  EXPECT_EQ(config.model_type, "qwen3");
  EXPECT_EQ(config.num_hidden_layers, 1);
  EXPECT_EQ(config.hidden_size, 16);
  EXPECT_EQ(config.num_attention_heads, 4);
  EXPECT_EQ(config.num_key_value_heads, 2);
  EXPECT_EQ(config.head_dim, 8);
  EXPECT_EQ(config.intermediate_size, 24);
  EXPECT_EQ(config.vocab_size, 32);
  EXPECT_EQ(config.max_position_embeddings, 64);
  EXPECT_EQ(config.rms_norm_eps, 1e-6);
  EXPECT_EQ(config.rope.theta, 1e6);
  EXPECT_EQ(config.rope.type, "default");
  EXPECT_FALSE(config.rope.adjacent_pairs);
  EXPECT_EQ(config.tie_word_embeddings, true);
}

TEST(GgufConfig, TheHeadIsTiedWhereTheFileHasNone) {
  EXPECT_EQ(config_of(qwen3().zeros("output.weight", {16, 32})).tie_word_embeddings, false);
}

TEST(GgufConfig, WithoutKeyLengthAHeadIsItsShareOfTheWidth) {
  EXPECT_EQ(config_of(qwen3()).head_dim, 4);
  const GgufWriter odd = heads(gguf_config("qwen3"), "qwen3", 6, 2).zeros("token_embd.weight", {16, 32});
  EXPECT_THAT(refusal(odd), AllOf(HasSubstr("qwen3.attention.key_length: missing"), HasSubstr("6")));
}

TEST(GgufConfig, RefusesValuesThatCannotBe) {
  const auto with = [](const std::string& key, auto write) {
    GgufWriter file;
    file.text("general.architecture", "qwen3");
    for (const std::string name : {"block_count", "context_length", "embedding_length", "feed_forward_length",
                                   "attention.head_count", "attention.head_count_kv"}) {
      if (name != key) file.u32("qwen3." + name, 8);
    }
    write(file, "qwen3." + key);
    file.f32("qwen3.attention.layer_norm_rms_epsilon", 1e-6f).zeros("token_embd.weight", {16, 32});
    return refusal(file);
  };
  const auto text = [](GgufWriter& file, const std::string& key) { file.text(key, "28"); };
  const auto real = [](GgufWriter& file, const std::string& key) { file.f32(key, 28); };
  const auto zero = [](GgufWriter& file, const std::string& key) { file.u32(key, 0); };
  const auto nothing = [](GgufWriter&, const std::string&) {};
  for (const std::string key :
       {"block_count", "context_length", "embedding_length", "feed_forward_length", "attention.head_count"}) {
    EXPECT_THAT(with(key, text), HasSubstr("qwen3." + key + ": an integer"));
    EXPECT_THAT(with(key, real), HasSubstr("qwen3." + key + ": an integer"));
    EXPECT_THAT(with(key, zero), HasSubstr("qwen3." + key + ": an integer from 1"));
    EXPECT_THAT(with(key, nothing), HasSubstr("qwen3." + key + ": missing"));
  }
  EXPECT_THAT(with("attention.head_count_kv", zero), HasSubstr("qwen3.attention.head_count_kv"));
  EXPECT_THAT(
      with("attention.head_count_kv", [](GgufWriter& f, const std::string& key) { f.u32(key, 3); }),
      HasSubstr(
          "qwen3.attention.head_count_kv: a divisor of qwen3.attention.head_count 8 expected, 3 found"));
}

TEST(GgufConfig, HeadsMustBeTheSameInAllLayers) {
  const auto listed = [](const std::vector<std::int32_t>& counts) {
    GgufWriter file = gguf_config("qwen3");
    file.u32("qwen3.attention.head_count", 4).i32s("qwen3.attention.head_count_kv", counts);
    return file.zeros("token_embd.weight", {16, 32});
  };
  EXPECT_EQ(config_of(listed({2, 2})).num_key_value_heads, 2);
  EXPECT_THAT(refusal(listed({2, 1}), ErrorKind::unsupported), HasSubstr("qwen3.attention.head_count_kv"));
  EXPECT_THAT(refusal(listed({})), HasSubstr("qwen3.attention.head_count_kv"));
  EXPECT_THAT(refusal(listed({0, 0})), HasSubstr("qwen3.attention.head_count_kv"));
}

TEST(GgufConfig, RefusesOtherArchitecturesByNameWithTheList) {
  EXPECT_THAT(refusal(GgufWriter().text("general.architecture", "mamba\x1b"), ErrorKind::unsupported),
              AllOf(HasSubstr("general.architecture"), HasSubstr("\"mamba\\x1B\""),
                    HasSubstr("llama, qwen2, qwen3, qwen3moe")));
  EXPECT_THAT(refusal(GgufWriter(), ErrorKind::unsupported), HasSubstr("nothing found"));
  EXPECT_THAT(refusal(qwen3().text("general.type", "adapter"), ErrorKind::unsupported),
              HasSubstr("\"adapter\""));
}

TEST(GgufConfig, RefusesVariantsThatWouldBeComputedWrongly) {
  const auto unsupported = [](const GgufWriter& file) { return refusal(file, ErrorKind::unsupported); };
  EXPECT_THAT(unsupported(qwen3().u32("qwen3.attention.value_length", 8)), HasSubstr("value_length: 8"));
  EXPECT_THAT(unsupported(qwen3().u32("qwen3.rope.dimension_count", 2)),
              HasSubstr("rope.dimension_count: 2"));
  EXPECT_THAT(unsupported(qwen3().u32("qwen3.expert_count", 8)), HasSubstr("qwen3.expert_count: 8"));
}

TEST(GgufConfig, LlamaPairsNeighbours) {
  const GgufWriter file = heads(gguf_config("llama"), "llama").zeros("token_embd.weight", {16, 32});
  EXPECT_TRUE(config_of(file).rope.adjacent_pairs);
  EXPECT_EQ(config_of(file).model_type, "llama");
}

TEST(GgufConfig, ReadsRopeScaling) {
  const auto scaled = [](const std::string& type) {
    return qwen3().text("qwen3.rope.scaling.type", type).f32("qwen3.rope.scaling.factor", 4);
  };
  EXPECT_EQ(config_of(scaled("none")).rope.type, "default");
  EXPECT_EQ(config_of(scaled("none")).rope.factor, std::nullopt);
  EXPECT_EQ(config_of(scaled("linear")).rope.type, "linear");
  EXPECT_EQ(config_of(scaled("linear")).rope.factor, 4);
  EXPECT_EQ(config_of(qwen3().f32("qwen3.rope.scaling.factor", 4)).rope.type, "linear");
  EXPECT_EQ(config_of(qwen3().f32("qwen3.rope.scale_linear", 2)).rope.factor, 2);
  EXPECT_EQ(config_of(qwen3().f32("qwen3.rope.scaling.factor", 0)).rope.type, "default");
  EXPECT_EQ(config_of(scaled("longrope")).rope.type, "longrope");  // which the model refuses by name
}

TEST(GgufConfig, ReadsYarn) {
  const auto yarn = [] {
    GgufWriter file = qwen3();
    file.text("qwen3.rope.scaling.type", "yarn").f32("qwen3.rope.scaling.factor", 4);
    return file.u32("qwen3.rope.scaling.original_context_length", 32);
  };
  const RopeConfig plain = config_of(yarn()).rope;
  EXPECT_EQ(plain.type, "yarn");
  EXPECT_EQ(plain.original_max_position_embeddings, 32);
  EXPECT_EQ(plain.attention_factor, std::nullopt);
  const RopeConfig full = config_of(yarn()
                                        .f32("qwen3.rope.scaling.yarn_attn_factor", 1.25f)
                                        .f32("qwen3.rope.scaling.yarn_beta_fast", 16)
                                        .f32("qwen3.rope.scaling.yarn_beta_slow", 2))
                              .rope;
  EXPECT_EQ(full.attention_factor, 1.25);
  EXPECT_EQ(full.beta_fast, 16);
  EXPECT_EQ(full.beta_slow, 2);
  EXPECT_DOUBLE_EQ(*config_of(yarn().f32("qwen3.rope.scaling.attn_factor", 0.5f)).rope.attention_factor,
                   0.5 * (1 + 0.1 * std::log(4.0)));
  EXPECT_THAT(refusal(yarn().f32("qwen3.rope.scaling.yarn_ext_factor", 0.5f), ErrorKind::unsupported),
              HasSubstr("yarn_ext_factor: 0.5"));
}

TEST(GgufConfig, TakesReadyMadeDivisorsOfFrequencies) {
  const auto divided = [](float value) {
    std::string bytes;
    for (const float each : {1.0f, value}) bytes += test::little_endian(std::bit_cast<std::uint32_t>(each));
    GgufWriter file = heads(gguf_config("llama"), "llama");
    file.tensor_entry("token_embd.weight", {16, 0}, 0, 0).tensor_entry("rope_freqs.weight", {2}, 0, 0);
    return file.data(bytes);
  };
  // The table has no rows here, which is refused first.
  EXPECT_THAT(refusal(divided(8)), HasSubstr("token_embd.weight"));
  GgufWriter file = heads(gguf_config("llama"), "llama").zeros("token_embd.weight", {16, 32});
  EXPECT_THAT(refusal(GgufWriter(file).zeros("rope_freqs.weight", {2})),
              HasSubstr("rope_freqs.weight: [2] positive"));
  EXPECT_THAT(refusal(GgufWriter(file).zeros("rope_freqs.weight", {3})), HasSubstr("shape [3] of F32 found"));
}

TEST(GgufConfig, ReadsExperts) {
  const auto moe = [] {
    GgufWriter file = heads(gguf_config("qwen3moe"), "qwen3moe");
    file.u32("qwen3moe.expert_count", 8).u32("qwen3moe.expert_used_count", 2);
    file.u32("qwen3moe.expert_feed_forward_length", 12).zeros("token_embd.weight", {16, 32});
    return file.zeros("blk.0.ffn_gate_inp.weight", {16, 8});
  };
  const ModelConfig config = config_of(moe());
  EXPECT_EQ(config.model_type, "qwen3_moe");
  EXPECT_EQ(config.num_experts, 8);
  EXPECT_EQ(config.num_experts_per_tok, 2);
  EXPECT_EQ(config.moe_intermediate_size, 12);
  EXPECT_EQ(config.norm_topk_prob, true);
  EXPECT_TRUE(config.mlp_only_layers.empty());
  EXPECT_EQ(config_of(moe().boolean("qwen3moe.expert_weights_norm", false)).norm_topk_prob, false);
  EXPECT_THAT(config_of(moe().zeros("blk.3.ffn_gate.weight", {16, 24})).mlp_only_layers, ElementsAre(3));
  EXPECT_THAT(refusal(moe().u32("qwen3moe.expert_gating_func", 2), ErrorKind::unsupported),
              HasSubstr("expert_gating_func: 2"));
}

TEST(GgufConfig, ReadsSamplingKeysEachByItself) {
  GgufWriter file;
  file.f32("general.sampling.temp", 0.6f)
      .raw("general.sampling.top_k", GgufType::i32, test::little_endian(20));
  file.f32("general.sampling.top_p", 0.95f);
  const GgufBytes bytes(file.file());
  const GenerationConfig config = gguf_generation_config(bytes.open().metadata());
  EXPECT_EQ(config.temperature, 0.6);
  EXPECT_EQ(config.top_k, 20);
  EXPECT_EQ(config.top_p, 0.95);
  EXPECT_EQ(config.min_p, std::nullopt);
  EXPECT_EQ(config.repetition_penalty, std::nullopt);
  const GgufBytes wrong(GgufWriter().f32("general.sampling.top_p", 1.5f).file());
  EXPECT_THAT(error_of([&] { (void)gguf_generation_config(wrong.open().metadata()); }),
              HasSubstr("general.sampling.top_p: a number from 0 to 1 expected, 1.5"));
}

}  // namespace
}  // namespace qgen
