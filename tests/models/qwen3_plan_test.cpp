#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <set>
#include <string>
#include <vector>

#include "models/small_model.h"
#include "qgen/models/architecture.h"
#include "support/error_of.h"

namespace qgen {
namespace {

using test::error_of;
using test::Model;
using test::Shape;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// The plan as text: one line a stage with the names of its weights.
std::vector<std::string> stage_lines(const Plan& plan) {
  const auto name = [&](WeightId id) {
    return id == kNoWeight ? std::string(" -") : " " + plan.weights[static_cast<std::size_t>(id)].name;
  };
  struct Names {
    decltype(name)& of;
    std::string operator()(const EmbedStage& s) const { return of(s.table); }
    std::string operator()(const NormQkvStage& s) const {
      return of(s.norm) + of(s.q_proj) + of(s.k_proj) + of(s.v_proj) + of(s.q_bias) + of(s.k_bias) +
             of(s.v_bias) + of(s.q_norm) + of(s.k_norm);
    }
    std::string operator()(const AttendStage&) const { return {}; }
    std::string operator()(const ProjectAddStage& s) const { return of(s.weight) + of(s.bias); }
    std::string operator()(const NormGateUpStage& s) const {
      return of(s.norm) + of(s.gate_proj) + of(s.up_proj);
    }
    std::string operator()(const MoeStage& s) const { return of(s.norm) + of(s.router); }
    std::string operator()(const NormHeadStage& s) const { return of(s.norm) + of(s.head); }
  };
  std::vector<std::string> lines;
  for (const Stage& stage : plan.stages)
    lines.push_back(stage_name(stage) + ":" + std::visit(Names{name}, stage));
  return lines;
}

const NormQkvStage& first_qkv(const Plan& plan) {
  return std::get<NormQkvStage>(plan.stages[1]);
}
const NormHeadStage& head_of(const Plan& plan) {
  return std::get<NormHeadStage>(plan.stages.back());
}

TEST(Qwen3Plan, BindsEveryWeightToItsPlace) {
  const Plan plan = Model().plan();
  const std::vector<std::string> lines = stage_lines(plan);
  ASSERT_EQ(lines.size(), 12u);
  EXPECT_EQ(lines[0], "embed: model.embed_tokens.weight");
  const std::string l1 = " model.layers.1.", a1 = l1 + "self_attn.", m1 = l1 + "mlp.";
  EXPECT_EQ(lines[6], "norm_qkv of layer 1:" + l1 + "input_layernorm.weight" + a1 + "q_proj.weight" + a1 +
                          "k_proj.weight" + a1 + "v_proj.weight - - -" + a1 + "q_norm.weight" + a1 +
                          "k_norm.weight");
  EXPECT_EQ(lines[7], "attend of layer 1:");
  EXPECT_EQ(lines[8], "project_add (attention) of layer 1:" + a1 + "o_proj.weight -");
  EXPECT_EQ(lines[9], "norm_gate_up of layer 1:" + l1 + "post_attention_layernorm.weight" + m1 +
                          "gate_proj.weight" + m1 + "up_proj.weight");
  EXPECT_EQ(lines[10], "project_add (feed-forward) of layer 1:" + m1 + "down_proj.weight -");
  EXPECT_EQ(lines[11], "norm_head: model.norm.weight lm_head.weight");
}

TEST(Qwen3Plan, TakesDimensionsFromTheConfig) {
  const Plan plan = Model().plan();
  EXPECT_EQ(plan.dims.layers, 2);
  EXPECT_EQ(plan.dims.width, 24);
  EXPECT_EQ(plan.dims.heads, 4);
  EXPECT_EQ(plan.dims.kv_heads, 2);
  EXPECT_EQ(plan.dims.head_dim, 8);
  EXPECT_EQ(plan.dims.feed_forward, 40);
  EXPECT_EQ(plan.dims.vocab, 50);
  EXPECT_EQ(plan.dims.context, 512);
  EXPECT_EQ(plan.norm_eps, 1e-5);
  ASSERT_EQ(plan.rope.inv_freq.size(), 4u);
  EXPECT_FLOAT_EQ(plan.rope.inv_freq[1], 0.1f);
  EXPECT_EQ(plan.rope.pairs, RopePairs::half_split);
}

TEST(Qwen3Plan, NeighboursDifferByTheirBiasesAndNorms) {
  const Plan qwen2 = Model("qwen2").plan();
  EXPECT_NE(first_qkv(qwen2).q_bias, kNoWeight);
  EXPECT_NE(first_qkv(qwen2).v_bias, kNoWeight);
  EXPECT_EQ(first_qkv(qwen2).q_norm, kNoWeight);
  for (const char* type : {"llama", "mistral"}) {
    const Plan plan = Model(type).plan();
    EXPECT_EQ(first_qkv(plan).q_bias, kNoWeight);
    EXPECT_EQ(first_qkv(plan).q_norm, kNoWeight);
  }
  EXPECT_NE(first_qkv(Model().plan()).q_norm, kNoWeight);
  EXPECT_NE(first_qkv(Model().plan()).k_norm, kNoWeight);
}

TEST(Qwen3Plan, AttentionBiasCoversAllFourProjections) {
  for (const char* type : {"qwen3", "llama"}) {
    Model model(type);
    model.config["attention_bias"] = "true";
    model.add_qkv_bias();
    EXPECT_THAT(model.refusal(), HasSubstr("model.layers.0.self_attn.o_proj.bias"));
    model.add_o_bias();
    const Plan plan = model.plan();
    EXPECT_NE(first_qkv(plan).k_bias, kNoWeight);
    EXPECT_NE(std::get<ProjectAddStage>(plan.stages[3]).bias, kNoWeight);
    EXPECT_EQ(std::get<ProjectAddStage>(plan.stages[5]).bias, kNoWeight);
  }
}

TEST(Qwen3Plan, RefusesWeightsThatTheConfigLeavesNoPlaceFor) {
  const std::vector<std::pair<std::string, Shape>> extras{{"model.layers.1.self_attn.v_proj.bias", {16}},
                                                          {"model.layers.0.self_attn.o_proj.bias", {24}},
                                                          {"model.layers.1.self_attn.q_norm.weight", {8}},
                                                          {"model.layers.1.mlp.up_proj.bias", {40}},
                                                          {"model.layers.2.input_layernorm.weight", {24}}};
  for (const auto& [name, shape] : extras) {
    Model model("llama");
    model.tensors[name] = shape;
    EXPECT_THAT(model.refusal(), AllOf(HasSubstr("weights: tensor " + name), HasSubstr("config.json")));
  }
  Model old("llama");
  old.tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {4};
  EXPECT_EQ(old.plan().stages.size(), 12u) << "tables that older exports carry are no weights";
}

TEST(Qwen3Plan, NamesEveryWeightThatIsMissingOrOfTheWrongShape) {
  for (const auto& [name, shape] : Model().tensors) {
    Model without;
    without.tensors.erase(name);
    EXPECT_THAT(without.refusal(), AllOf(HasSubstr("tensor " + name), HasSubstr("missing")));
    Model bent;
    ++bent.tensors[name][0];
    EXPECT_THAT(bent.refusal(),
                AllOf(HasSubstr("tensor " + name), HasSubstr("expected"), HasSubstr("found")));
  }
}

TEST(Qwen3Plan, TiesTheHeadToTheEmbedding) {
  Model model;
  model.config["tie_word_embeddings"] = "true";
  model.tensors.erase("lm_head.weight");
  const Plan plan = model.plan();
  EXPECT_EQ(head_of(plan).head, std::get<EmbedStage>(plan.stages[0]).table);
}

TEST(Qwen3Plan, UsesAHeadThatTheFileHasEvenWhereTheConfigTiesIt) {
  Model model;
  model.config["tie_word_embeddings"] = "true";
  const Plan plan = model.plan();
  EXPECT_EQ(plan.weights[static_cast<std::size_t>(head_of(plan).head)].name, "lm_head.weight");
}

TEST(Qwen3Plan, NeedsAHeadUnlessTheConfigTiesIt) {
  for (const char* type : {"qwen3", "qwen2", "llama", "mistral"}) {
    Model model(type);
    model.tensors.erase("lm_head.weight");
    EXPECT_THAT(model.refusal(), HasSubstr("tensor lm_head.weight"));
    model.config.erase("tie_word_embeddings");
    EXPECT_THAT(model.refusal(), HasSubstr("tensor lm_head.weight"));
  }
}

TEST(Qwen3Plan, AcceptsExportsWithoutTheCommonPrefix) {
  Model model, bare;
  for (Model* each : {&model, &bare}) {
    each->config["tie_word_embeddings"] = "true";
    each->tensors.erase("lm_head.weight");
  }
  bare.tensors.clear();
  for (const auto& [name, shape] : model.tensors) bare.tensors[name.substr(name.find('.') + 1)] = shape;
  const Plan plan = bare.plan();
  EXPECT_EQ(plan.stages.size(), 12u);
  EXPECT_EQ(plan.weights.back().name, "norm.weight");
}

TEST(Qwen3Plan, HeadDimIsAKeyOfItsOwn) {
  // Published sizes: hidden, heads, head_dim, rows of q_proj.
  const std::vector<std::array<std::int64_t, 4>> published{
      {1024, 16, 128, 2048}, {2560, 32, 128, 4096}, {5120, 64, 128, 8192}};
  for (const auto& [hidden, heads, head_dim, rows] : published) {
    Model model;
    model.config["hidden_size"] = std::to_string(hidden);
    model.config["num_attention_heads"] = std::to_string(heads);
    model.config["head_dim"] = std::to_string(head_dim);
    model.tensors["model.embed_tokens.weight"] = {50, hidden};
    model.tensors["model.layers.0.input_layernorm.weight"] = {hidden};
    model.tensors["model.layers.0.self_attn.q_proj.weight"] = {hidden, hidden};
    EXPECT_THAT(model.refusal(),
                HasSubstr("[" + std::to_string(rows) + ", " + std::to_string(hidden) + "] expected"));
  }
}

TEST(Qwen3Plan, HeadDimThatTheConfigDoesNotSayIsTheFamilysOwn) {
  for (const char* absent : {"", "null"}) {
    Model quotient("llama");
    quotient.config["head_dim"] = absent;
    if (*absent == '\0') quotient.config.erase("head_dim");
    EXPECT_THAT(quotient.refusal(), HasSubstr("[24, 24] expected, [32, 24] found"));
    quotient.config["hidden_size"] = "30";
    EXPECT_THAT(quotient.refusal(), AllOf(HasSubstr("head_dim"), HasSubstr("30"), HasSubstr("4")));

    Model published;
    published.config = quotient.config;
    published.config["model_type"] = "\"qwen3\"";
    published.config["hidden_size"] = "24";
    EXPECT_THAT(published.refusal(), HasSubstr("[512, 24] expected")) << "128 for each of 4 heads";
    published.tensors["model.layers.0.self_attn.q_proj.weight"] = {24, 24};
    EXPECT_THAT(published.refusal(),
                HasSubstr("tensor model.layers.0.self_attn.k_proj.weight: shape [12, 24]"))
        << "unless the weights say hidden_size / num_attention_heads";
  }
}

TEST(Qwen3Plan, KeyValueHeadsThatTheConfigDoesNotSayAreAsManyAsHeads) {
  Model model("llama");
  model.config.erase("num_key_value_heads");
  for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
    model.tensors[layer + "self_attn.k_proj.weight"] = {32, 24};
    model.tensors[layer + "self_attn.v_proj.weight"] = {32, 24};
  }
  EXPECT_EQ(model.plan().dims.kv_heads, 4);
}

TEST(Qwen3Plan, OtherSilencesHaveThePublishedDefaults) {
  const std::map<std::string, std::int64_t> contexts{
      {"qwen3", 32768}, {"qwen2", 32768}, {"llama", 2048}, {"mistral", 4096}};
  for (const auto& [type, context] : contexts) {
    Model model(type);
    for (const char* key : {"rms_norm_eps", "rope_theta", "max_position_embeddings", "tie_word_embeddings"}) {
      model.config.erase(key);
    }
    const Plan plan = model.plan();
    EXPECT_EQ(plan.norm_eps, 1e-6);
    EXPECT_FLOAT_EQ(plan.rope.inv_freq[1], 0.1f);
    EXPECT_EQ(plan.dims.context, context) << type;
  }
}

TEST(Qwen3Plan, NamesTheKeyOfADimensionThatIsMissing) {
  for (const char* key :
       {"hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "vocab_size"}) {
    Model model;
    model.config.erase(key);
    EXPECT_THAT(model.refusal(), HasSubstr(std::string("config.json: ") + key + ": missing"));
  }
}

TEST(Qwen3Plan, RefusesHeadsThatDoNotDivide) {
  Model model;
  model.config["num_key_value_heads"] = "3";
  EXPECT_THAT(model.refusal(), AllOf(HasSubstr("num_key_value_heads"), HasSubstr("4"), HasSubstr("3 found")));
  model.config["num_key_value_heads"] = "8";
  EXPECT_THAT(model.refusal(), HasSubstr("num_key_value_heads"));
  Model odd;
  odd.config["head_dim"] = "7";
  EXPECT_THAT(odd.refusal(), AllOf(HasSubstr("head_dim"), HasSubstr("even"), HasSubstr("7 found")));
}

TEST(Qwen3Plan, LargestDimensionsAreRefusedByShapeWithoutOverflow) {
  const std::map<std::string, std::string> expected{{"hidden_size", "[50, 2147483648]"},
                                                    {"num_attention_heads", "[17179869184, 24]"},
                                                    {"head_dim", "[8589934592, 24]"},
                                                    {"intermediate_size", "[2147483648, 24]"},
                                                    {"vocab_size", "[2147483648, 24]"}};
  for (const auto& [key, shape] : expected) {
    Model model;
    model.config[key] = "2147483648";
    EXPECT_THAT(model.refusal(), HasSubstr(shape + " expected")) << key;
  }
  Model model;
  model.config["num_attention_heads"] = "2147483648";
  model.config["num_key_value_heads"] = "2147483648";
  model.config["head_dim"] = "2147483648";
  EXPECT_THAT(model.refusal(), HasSubstr("4611686018427387904"));
  Model deep;
  deep.config["num_hidden_layers"] = "2147483648";
  EXPECT_THAT(deep.refusal(), HasSubstr("model.layers.2."));
}

TEST(Qwen3Plan, RefusesVariantsByName) {
  const std::vector<std::array<std::string, 3>> variants{
      {"hidden_act", "\"gelu\"", "hidden_act gelu"},
      {"mlp_bias", "true", "mlp_bias"},
      {"quantization_config", R"({"quant_method": "awq"})", "quantization_config (awq)"},
      {"partial_rotary_factor", "0.5", "partial_rotary_factor 0.5"},
      {"rope_scaling", R"({"type": "dynamic", "factor": 2})", "rope_type dynamic"},
      {"layer_types", R"(["full_attention", "linear_attention"])", "layer_types linear_attention"},
      {"architectures", R"(["Qwen3ForSequenceClassification"])",
       "architectures Qwen3ForSequenceClassification"},
  };
  for (const auto& [key, value, message] : variants) {
    Model model;
    model.config[key] = value;
    EXPECT_THAT(model.refusal(ErrorKind::unsupported), AllOf(HasSubstr("config.json: "), HasSubstr(message)));
  }
  Model fine;
  fine.config["architectures"] = R"(["Qwen3ForCausalLM"])";
  fine.config["quantization_config"] = "null";
  EXPECT_EQ(fine.plan().stages.size(), 12u);
}

TEST(Qwen3Plan, RefusesLayerTypesOfAnotherNumberOfLayers) {
  Model model;
  model.config["layer_types"] = R"(["full_attention"])";
  EXPECT_THAT(model.refusal(),
              AllOf(HasSubstr("layer_types"), HasSubstr("2 entries expected"), HasSubstr("1 found")));
}

TEST(Qwen3Plan, ASlidingWindowInForceEndsTheContext) {
  const auto context = [](const std::string& type, const std::map<std::string, std::string>& members) {
    Model model(type);
    for (const auto& [key, value] : members) model.config[key] = value;
    return model.plan().dims.context;
  };
  // Off unless switched on, and then only where a layer slides.
  EXPECT_EQ(context("qwen3", {{"sliding_window", "64"}}), 512);
  EXPECT_EQ(context("qwen3", {{"sliding_window", "64"}, {"use_sliding_window", "false"}}), 512);
  EXPECT_EQ(context("qwen3", {{"sliding_window", "64"}, {"use_sliding_window", "true"}}), 512);
  EXPECT_EQ(context("qwen2",
                    {{"sliding_window", "64"}, {"use_sliding_window", "true"}, {"max_window_layers", "1"}}),
            64);
  EXPECT_EQ(context("qwen2",
                    {{"sliding_window", "64"}, {"use_sliding_window", "true"}, {"max_window_layers", "2"}}),
            512);
  EXPECT_EQ(context("qwen3",
                    {{"sliding_window", "null"}, {"use_sliding_window", "true"}, {"max_window_layers", "0"}}),
            512);
  EXPECT_EQ(context("qwen3", {{"sliding_window", "64"},
                              {"use_sliding_window", "true"},
                              {"layer_types", R"(["full_attention", "sliding_attention"])"}}),
            64);
  EXPECT_EQ(context("qwen3", {{"sliding_window", "64"},
                              {"use_sliding_window", "true"},
                              {"max_window_layers", "0"},
                              {"layer_types", R"(["full_attention", "full_attention"])"}}),
            512);
  // Mistral has no switch, Llama no window.
  EXPECT_EQ(context("mistral", {{"sliding_window", "64"}}), 64);
  EXPECT_EQ(context("mistral", {{"sliding_window", "4096"}}), 512);
  EXPECT_EQ(context("mistral", {{"sliding_window", "null"}}), 512);
  EXPECT_EQ(context("llama", {{"sliding_window", "64"}, {"use_sliding_window", "true"}}), 512);
}

}  // namespace
}  // namespace qgen
