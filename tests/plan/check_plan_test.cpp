#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "qgen/base/error.h"
#include "qgen/plan/plan.h"
#include "support/random_model.h"

namespace qgen {
namespace {

using test::ModelShape;
using test::RandomModel;

std::string refusal(const Plan& plan) {
  try {
    check_plan(plan);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::file);
    return error.what();
  }
  return "accepted";
}

template <typename Kind>
Kind& first(Plan& plan) {
  for (Stage& stage : plan.stages) {
    if (Kind* found = std::get_if<Kind>(&stage)) return *found;
  }
  throw std::logic_error("no such stage");
}

TEST(CheckPlan, AcceptsEveryVariantOfTheFamily) {
  ModelShape shape;
  EXPECT_EQ(refusal(RandomModel(shape).plan()), "accepted");
  shape.qkv_bias = shape.o_bias = true;
  shape.qk_norm = shape.tied = false;
  EXPECT_EQ(refusal(RandomModel(shape).plan()), "accepted");
}

TEST(CheckPlan, NamesTheWeightAndBothShapes) {
  RandomModel model({});
  Plan plan = model.plan();
  plan.weights[static_cast<std::size_t>(first<NormQkvStage>(plan).k_proj)].view.rows = 15;
  EXPECT_EQ(refusal(plan), "tensor k_proj has shape [15, 32], expected [16, 32]");
}

TEST(CheckPlan, RefusesAWeightTypeWithoutKernels) {
  RandomModel model({});
  Plan plan = model.plan();
  plan.weights[0].view.dtype = DType::i64;
  EXPECT_EQ(refusal(plan), "tensor embed_tokens is of type I64, a weight type is expected");
}

TEST(CheckPlan, RefusesRowsThatAreNoWholeBlocks) {
  ModelShape shape;
  shape.dims.width = 48;
  RandomModel model(shape);
  Plan plan = model.plan();
  plan.weights[0].view.dtype = DType::q8_0;
  EXPECT_EQ(refusal(plan),
            "tensor embed_tokens has rows of 48, expected a multiple of 32, the block of Q8_0");
}

TEST(CheckPlan, RefusesMissingAndUnknownWeights) {
  RandomModel model({});
  for (const WeightId id : {kNoWeight, WeightId{1000}}) {
    Plan plan = model.plan();
    first<NormGateUpStage>(plan).up_proj = id;
    EXPECT_THAT(refusal(plan), testing::HasSubstr("the plan names weight " + std::to_string(id)));
  }
}

TEST(CheckPlan, RefusesRowsThatOverlap) {
  RandomModel model({});
  Plan plan = model.plan();
  plan.weights[0].view.stride = 4;
  EXPECT_EQ(refusal(plan), "tensor embed_tokens has overlapping rows");
}

TEST(CheckPlan, RefusesStagesOutOfOrder) {
  RandomModel model({});
  Plan plan = model.plan();
  std::swap(plan.stages[2], plan.stages[3]);
  EXPECT_THAT(refusal(plan), testing::HasSubstr("stage 2 of the plan is project_add (attention) of layer 0"));
  plan = model.plan();
  plan.stages.pop_back();
  EXPECT_EQ(refusal(plan), "the plan has 11 stages, expected more for 2 layers");
  plan = model.plan();
  plan.stages.push_back(plan.stages.back());
  EXPECT_EQ(refusal(plan), "the plan has 13 stages, expected 12 for 2 layers");
  plan = model.plan();
  std::get<AttendStage>(plan.stages[7]).layer = 0;
  EXPECT_EQ(refusal(plan), "stage 7 of the plan is attend of layer 0, expected layer 1");
  ModelShape same_widths;
  same_widths.dims.feed_forward = same_widths.dims.heads * same_widths.dims.head_dim;
  RandomModel square(same_widths);
  plan = square.plan();
  std::get<ProjectAddStage>(plan.stages[3]).input = ProjectInput::feed_forward;
  EXPECT_THAT(refusal(plan), testing::HasSubstr("reads the wrong input"));
}

TEST(CheckPlan, RefusesDimensionsThatMakeNoSense) {
  RandomModel model({});
  for (std::int64_t PlanDims::*dim :
       {&PlanDims::layers, &PlanDims::width, &PlanDims::heads, &PlanDims::kv_heads, &PlanDims::head_dim,
        &PlanDims::feed_forward, &PlanDims::vocab, &PlanDims::context}) {
    for (const std::int64_t value :
         {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()}) {
      Plan plan = model.plan();
      plan.dims.*dim = value;
      EXPECT_THAT(refusal(plan), testing::HasSubstr("expected 1 to 2147483648"));
    }
  }
  Plan plan = model.plan();
  plan.dims.kv_heads = 3;
  EXPECT_EQ(refusal(plan), "num_attention_heads 4 is no multiple of num_key_value_heads 3");
  plan = model.plan();
  plan.dims.head_dim = 7;
  EXPECT_EQ(refusal(plan), "head_dim 7 is odd");
}

ModelShape sparse_shape() {
  ModelShape shape;
  shape.dims.experts = 3;
  shape.dims.experts_per_token = 2;
  shape.dims.expert_width = 24;
  return shape;
}

TEST(CheckPlan, AcceptsLayersWithExpertsAmongOthers) {
  ModelShape shape = sparse_shape();
  shape.dense_layers = {1};
  EXPECT_EQ(refusal(RandomModel(shape).plan()), "accepted");
  shape.dense_layers = {};
  shape.dims.feed_forward = 0;
  EXPECT_EQ(refusal(RandomModel(shape).plan()), "accepted");
}

TEST(CheckPlan, ChecksEveryExpert) {
  RandomModel model(sparse_shape());
  const auto& stage = first<MoeStage>(model.plan());
  EXPECT_EQ(stage_name(stage), "moe of layer 0");
  const auto bent = [&](WeightId id) {
    Plan plan = model.plan();
    ++plan.weights[static_cast<std::size_t>(id)].view.rows;
    return refusal(plan);
  };
  EXPECT_EQ(bent(stage.router), "tensor router has shape [4, 32], expected [3, 32]");
  EXPECT_EQ(bent(stage.gate_proj[2]), "tensor gate_proj has shape [25, 32], expected [24, 32]");
  EXPECT_EQ(bent(stage.up_proj[0]), "tensor up_proj has shape [25, 32], expected [24, 32]");
  EXPECT_EQ(bent(stage.down_proj[2]), "tensor down_proj has shape [33, 24], expected [32, 24]");
  Plan plan = model.plan();
  first<MoeStage>(plan).down_proj.pop_back();
  EXPECT_EQ(refusal(plan), "moe of layer 0 has 2 times down_proj, expected 3");
}

TEST(CheckPlan, RefusesNumbersOfExpertsThatMakeNoSense) {
  RandomModel model(sparse_shape());
  for (std::int64_t PlanDims::*dim :
       {&PlanDims::experts, &PlanDims::experts_per_token, &PlanDims::expert_width}) {
    for (const std::int64_t value :
         {std::int64_t{0}, std::int64_t{-1}, std::numeric_limits<std::int64_t>::max()}) {
      Plan plan = model.plan();
      plan.dims.*dim = value;
      EXPECT_THAT(refusal(plan), testing::HasSubstr("expected 1 to 2147483648"));
    }
  }
  model.plan().dims.experts_per_token = 4;
  EXPECT_EQ(refusal(model.plan()), "num_experts_per_tok 4 is more than num_experts 3");
}

TEST(CheckPlan, RefusesRotaryValuesThatMakeNoSense) {
  RandomModel model({});
  Plan plan = model.plan();
  plan.rope.inv_freq.pop_back();
  EXPECT_EQ(refusal(plan), "the plan has 3 rotary frequencies, expected 4");
  plan = model.plan();
  plan.rope.inv_freq[1] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(refusal(plan), "a rotary frequency is not finite");
}

}  // namespace
}  // namespace qgen
