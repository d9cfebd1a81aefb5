// Plans of models whose layers have experts.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "models/small_model.h"

namespace qgen {
namespace {

using test::Model;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Three experts in each of the two layers, two for a token.
Model sparse_model() {
  Model model("qwen3_moe");
  model.config["num_experts"] = "3";
  model.config["num_experts_per_tok"] = "2";
  model.config["moe_intermediate_size"] = "12";
  model.config["norm_topk_prob"] = "true";
  for (const char* layer : {"model.layers.0.", "model.layers.1."}) model.make_sparse(layer, 3);
  return model;
}

std::vector<std::string> stage_names(const Plan& plan) {
  std::vector<std::string> names;
  for (const Stage& stage : plan.stages) names.push_back(stage_name(stage));
  return names;
}

TEST(ExpertsPlan, BindsEveryExpertToItsPlace) {
  const Plan plan = sparse_model().plan();
  const auto name = [&](WeightId id) { return plan.weights.at(static_cast<std::size_t>(id)).name; };
  ASSERT_EQ(plan.stages.size(), 10u);
  const auto& stage = std::get<MoeStage>(plan.stages[8]);
  const std::string layer = "model.layers.1.";
  EXPECT_EQ(stage.layer, 1);
  EXPECT_EQ(name(stage.norm), layer + "post_attention_layernorm.weight");
  EXPECT_EQ(name(stage.router), layer + "mlp.gate.weight");
  ASSERT_EQ(stage.gate_proj.size(), 3u);
  for (std::size_t e = 0; e < 3; ++e) {
    const std::string expert = layer + "mlp.experts." + std::to_string(e) + ".";
    EXPECT_EQ(name(stage.gate_proj[e]), expert + "gate_proj.weight");
    EXPECT_EQ(name(stage.up_proj[e]), expert + "up_proj.weight");
    EXPECT_EQ(name(stage.down_proj[e]), expert + "down_proj.weight");
  }
  EXPECT_TRUE(stage.norm_topk_prob);
  EXPECT_EQ(plan.dims.experts, 3);
  EXPECT_EQ(plan.dims.experts_per_token, 2);
  EXPECT_EQ(plan.dims.expert_width, 12);
  EXPECT_NE(std::get<NormQkvStage>(plan.stages[1]).q_norm, kNoWeight);
}

TEST(ExpertsPlan, ProbabilitiesAreNotDividedByTheirSumUnlessTheConfigSaysSo) {
  Model model = sparse_model();
  model.config.erase("norm_topk_prob");
  EXPECT_FALSE(std::get<MoeStage>(model.plan().stages[4]).norm_topk_prob);
}

TEST(ExpertsPlan, SomeLayersMayBeDense) {
  const auto expect_first_dense = [](Model model) {
    const Model dense("qwen3_moe");
    std::erase_if(model.tensors,
                  [](const auto& tensor) { return tensor.first.starts_with("model.layers.0.mlp."); });
    for (const auto& [name, shape] : dense.tensors) {
      if (name.starts_with("model.layers.0.mlp.")) model.tensors[name] = shape;
    }
    EXPECT_THAT(
        stage_names(model.plan()),
        ElementsAre("embed", "norm_qkv of layer 0", "attend of layer 0", "project_add (attention) of layer 0",
                    "norm_gate_up of layer 0", "project_add (feed-forward) of layer 0", "norm_qkv of layer 1",
                    "attend of layer 1", "project_add (attention) of layer 1", "moe of layer 1",
                    "norm_head"));
    EXPECT_EQ(model.plan().dims.feed_forward, 40);
    model.config.erase("intermediate_size");
    EXPECT_THAT(model.refusal(), HasSubstr("intermediate_size: missing"));
  };
  Model by_list = sparse_model(), by_step = sparse_model();
  by_list.config["mlp_only_layers"] = "[0, 7, 0]";
  by_step.config["decoder_sparse_step"] = "2";
  expect_first_dense(by_list);
  expect_first_dense(by_step);
}

TEST(ExpertsPlan, SizesThatNoLayerHasAreNotNeeded) {
  Model sparse = sparse_model();
  sparse.config.erase("intermediate_size");
  EXPECT_EQ(sparse.plan().dims.feed_forward, 0);
  for (const auto& [key, value] : std::vector<std::pair<std::string, std::string>>{
           {"decoder_sparse_step", "3"}, {"mlp_only_layers", "[1, 0]"}}) {
    Model dense("qwen3_moe");
    dense.config[key] = value;
    EXPECT_EQ(dense.plan().stages.size(), 12u);
    dense.config["num_experts"] = "2147483648";
    EXPECT_EQ(dense.plan().dims.experts, 0);
  }
}

TEST(ExpertsPlan, NamesEveryWeightThatIsMissingOrOfTheWrongShape) {
  for (const auto& [name, shape] : sparse_model().tensors) {
    Model without = sparse_model();
    without.tensors.erase(name);
    EXPECT_THAT(without.refusal(), AllOf(HasSubstr("tensor " + name), HasSubstr("missing")));
    Model bent = sparse_model();
    ++bent.tensors[name][0];
    EXPECT_THAT(bent.refusal(),
                AllOf(HasSubstr("tensor " + name), HasSubstr("expected"), HasSubstr("found")));
  }
}

TEST(ExpertsPlan, RefusesWeightsThatTheConfigLeavesNoPlaceFor) {
  for (const char* name :
       {"model.layers.1.mlp.experts.3.gate_proj.weight", "model.layers.1.mlp.gate_proj.weight"}) {
    Model model = sparse_model();
    model.tensors[name] = {12, 24};
    EXPECT_THAT(model.refusal(), AllOf(HasSubstr(std::string("tensor ") + name), HasSubstr("config.json")));
  }
  Model dense;
  dense.tensors["model.layers.0.mlp.gate.weight"] = {3, 24};
  EXPECT_THAT(dense.refusal(), HasSubstr("tensor model.layers.0.mlp.gate.weight"));
}

TEST(ExpertsPlan, RefusesSizesThatAreMissingOrContradictEachOther) {
  for (const char* key : {"num_experts", "num_experts_per_tok", "moe_intermediate_size"}) {
    Model model = sparse_model();
    model.config.erase(key);
    EXPECT_THAT(model.refusal(), HasSubstr(std::string("config.json: ") + key + ": missing"));
  }
  Model model = sparse_model();
  model.config["num_experts_per_tok"] = "4";
  EXPECT_THAT(model.refusal(), AllOf(HasSubstr("num_experts_per_tok"), HasSubstr("at most num_experts 3"),
                                     HasSubstr("4 found")));
  Model large = sparse_model();
  for (const char* key : {"num_experts", "num_experts_per_tok", "moe_intermediate_size"})
    large.config[key] = "2147483648";
  EXPECT_THAT(large.refusal(), HasSubstr("[2147483648, 24] expected"));
  Model deep = sparse_model();
  deep.config["num_hidden_layers"] = "2147483648";
  EXPECT_THAT(deep.refusal(), HasSubstr("model.layers.2."));
}

TEST(ExpertsPlan, ASlidingWindowThatIsSwitchedOnHoldsForEveryLayer) {
  Model model = sparse_model();
  model.config["sliding_window"] = "64";
  model.config["max_window_layers"] = "2";
  EXPECT_EQ(model.plan().dims.context, 512);
  model.config["use_sliding_window"] = "true";
  EXPECT_EQ(model.plan().dims.context, 64);
}

}  // namespace
}  // namespace qgen
