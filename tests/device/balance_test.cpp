#include "device/cpu/balance.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>

#include "device/cpu/packed_weights.h"
#include "device/executor_fixture.h"

namespace qgen {
namespace {

using test::ModelShape;
using test::RandomModel;
using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> names(const Plan& plan, const std::vector<BalancedInput>& inputs) {
  std::vector<std::string> names;
  for (const BalancedInput& input : inputs) names.push_back(stage_name(plan.stages[input.stage]));
  return names;
}

std::vector<std::string> balanced(const Plan& plan, std::optional<PackedType> type) {
  return names(plan, PanelLayout(plan, best_kernels(), type).balanced);
}

template <typename Kind>
std::vector<Kind*> all(Plan& plan) {
  std::vector<Kind*> found;
  for (Stage& stage : plan.stages) {
    if (Kind* kind = std::get_if<Kind>(&stage)) found.push_back(kind);
  }
  return found;
}

const std::vector<std::string> kAll{"norm_qkv of layer 0",
                                    "norm_gate_up of layer 0",
                                    "project_add (feed-forward) of layer 0",
                                    "norm_qkv of layer 1",
                                    "norm_gate_up of layer 1",
                                    "project_add (feed-forward) of layer 1",
                                    "norm_head"};

TEST(BalancedInputs, AreThoseOfMatricesThatAreRounded) {
  ModelShape shape;
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    shape.dtypes = {dtype};
    const RandomModel model(shape);
    EXPECT_EQ(balanced(model.plan(), PackedType::q8_rotated), kAll);
    EXPECT_EQ(balanced(model.plan(), PackedType::q4), kAll);
    EXPECT_THAT(balanced(model.plan(), PackedType::bf16), IsEmpty());
    EXPECT_THAT(balanced(model.plan(), std::nullopt), IsEmpty());
  }
}

TEST(BalancedInputs, LeaveStoredBlocksThatAreHeldAsTheyAreAlone) {
  ModelShape shape;
  shape.dims = {2, 64, 4, 2, 16, 96, 67, 4096};
  shape.dtypes = {DType::q8_0};
  EXPECT_THAT(balanced(RandomModel(shape).plan(), PackedType::q8_rotated), IsEmpty());
  EXPECT_EQ(balanced(RandomModel(shape).plan(), PackedType::q4), kAll) << "8 bits rounded to 4";
  shape.dtypes = {DType::q4_0};
  EXPECT_THAT(balanced(RandomModel(shape).plan(), PackedType::q4), IsEmpty());
  EXPECT_THAT(balanced(RandomModel(shape).plan(), std::nullopt), IsEmpty());
}

TEST(BalancedInputs, NeedEveryMatrixThatSharesThem) {
  RandomModel model({});
  Plan& plan = model.plan();
  const auto without = [&](WeightId id) {
    std::vector<PackedType> types(plan.weights.size(), PackedType::q8_rotated);
    types[static_cast<std::size_t>(id)] = PackedType::q8;
    std::vector<std::string> missing = kAll;
    for (const std::string& name : names(plan, balanced_inputs(plan, types))) std::erase(missing, name);
    return missing;
  };
  EXPECT_THAT(without(all<NormQkvStage>(plan)[1]->k_proj), ElementsAre("norm_qkv of layer 1"));
  const NormGateUpStage& gate_up = *all<NormGateUpStage>(plan)[0];
  EXPECT_THAT(without(gate_up.gate_proj), ElementsAre("norm_gate_up of layer 0"));
  EXPECT_THAT(without(gate_up.up_proj),
              ElementsAre("norm_gate_up of layer 0", "project_add (feed-forward) of layer 0"))
      << "its rows would be divided";
  EXPECT_THAT(without(all<ProjectAddStage>(plan)[0]->weight), IsEmpty()) << "o_proj";
}

TEST(BalancedInputs, AreNotThoseOfWeightsUsedTwice) {
  RandomModel model({});
  Plan& plan = model.plan();
  all<NormQkvStage>(plan)[1]->norm = all<NormQkvStage>(plan)[0]->norm;
  all<NormGateUpStage>(plan)[1]->up_proj = all<NormGateUpStage>(plan)[0]->up_proj;
  EXPECT_THAT(balanced(plan, PackedType::q8_rotated), ElementsAre("norm_head"));
}

TEST(BalancedInputs, AreNotThoseOfExperts) {
  ModelShape shape;
  shape.dims.experts = 4;
  shape.dims.experts_per_token = 2;
  shape.dims.expert_width = 24;
  EXPECT_THAT(balanced(RandomModel(shape).plan(), PackedType::q8_rotated),
              ElementsAre("norm_qkv of layer 0", "norm_qkv of layer 1", "norm_head"));
}

std::vector<double> widened(const Plan& plan, WeightId id) {
  const TensorView& view = plan.weight(id);
  const auto* values = reinterpret_cast<const float*>(view.data);
  return {values, values + view.rows * view.cols};
}

/// Of columns, over all rows.
std::vector<double> column_rms(const std::vector<double>& rows, std::size_t cols) {
  std::vector<double> rms(cols);
  for (std::size_t i = 0; i < rows.size(); ++i) rms[i % cols] += rows[i] * rows[i];
  for (double& value : rms) value = std::sqrt(value / static_cast<double>(rows.size() / cols));
  return rms;
}

struct Measured {
  std::vector<float> factors;
  std::vector<double> x, w;  ///< root mean squares by column
};

/// Of q, k and v of the first layer. `change` may change its norm and h[3, D].
Measured measure(const std::function<void(std::span<float> norm, std::span<float> h)>& change) {
  RandomModel model({});
  const Plan& plan = model.plan();
  const auto& stage = std::get<NormQkvStage>(plan.stages[1]);
  const BalancedInput input{1, 32, {stage.q_proj, stage.k_proj, stage.v_proj}, stage.norm, kNoWeight};
  std::vector<float> h(3 * 32);
  for (std::size_t i = 0; i < h.size(); ++i) h[i] = static_cast<float>((i * 37 % 101) + 1) / 50;
  auto* norm = reinterpret_cast<float*>(model.storage(stage.norm).data());
  change({norm, 32}, h);

  std::vector<double> x(h.begin(), h.end()), w;
  for (std::size_t row = 0; row < 3; ++row) {
    const auto begin = x.begin() + static_cast<std::ptrdiff_t>(row * 32);
    const double squares = std::inner_product(begin, begin + 32, begin, 0.0);
    for (std::size_t j = 0; j < 32; ++j) {
      x[row * 32 + j] *= static_cast<double>(norm[j]) / std::sqrt(squares / 32 + 1e-6);
    }
  }
  for (const WeightId id : input.matrices) {
    for (const double value : widened(plan, id)) w.push_back(value);
  }
  return {balancing_factors(plan, input, best_kernels(), h), column_rms(x, 32), column_rms(w, 32)};
}

TEST(BalancingFactors, MakeColumnsOfInputsAndWeightsAlike) {
  const Measured measured = measure([](auto, auto) {});
  std::vector<double> expected(32);
  double log = 0;
  for (std::size_t j = 0; j < 32; ++j) {
    expected[j] = std::sqrt(std::pow(measured.x[j], 0.7) / measured.w[j]);
    log += std::log(expected[j]) / 32;
  }
  for (std::size_t j = 0; j < 32; ++j) EXPECT_NEAR(measured.factors[j], expected[j] / std::exp(log), 1e-5);
}

TEST(BalancingFactors, LeaveColumnsWithoutNumbersAlone) {
  const Measured measured = measure([](auto norm, auto) { norm[4] = 0; });
  EXPECT_EQ(measured.factors[4], 1.0f);
  double log = 0;
  for (const float factor : measured.factors) log += std::log(static_cast<double>(factor));
  EXPECT_NEAR(log, 0, 1e-5);
  const Measured nan = measure([](auto, auto h) { h[40] = std::numeric_limits<float>::quiet_NaN(); });
  EXPECT_EQ(nan.factors, std::vector<float>(32, 1.0f)) << "a row's norm makes all of it NaN";
  const Measured infinite = measure([](auto, auto h) { h[40] = std::numeric_limits<float>::infinity(); });
  EXPECT_EQ(infinite.factors[8], 1.0f);
  EXPECT_TRUE(std::ranges::all_of(infinite.factors, [](float factor) { return std::isfinite(factor); }));
}

TEST(BalancingFactors, StayWithinBounds) {
  const Measured measured = measure([](auto norm, auto) {
    norm[7] = 1e20f;
    norm[8] = 1e-20f;
  });
  EXPECT_EQ(measured.factors[7], 64.0f);
  EXPECT_EQ(measured.factors[8], 1.0f / 64);
}

TEST(BalancingTokens, AreDifferentOnesFromAllOverTheVocabulary) {
  PlanDims dims{2, 32, 4, 2, 8, 48, 160, 4096};
  std::vector<TokenId> tokens = balancing_tokens(dims);
  ASSERT_EQ(tokens.size(), 16u);
  std::ranges::sort(tokens);
  for (std::size_t i = 0; i < 16; ++i) {
    EXPECT_NEAR(tokens[i], 10.0 * static_cast<double>(i) + 5, 10) << i;
    if (i > 0) {
      EXPECT_LT(tokens[i - 1], tokens[i]);
    }
  }
  dims.context = 3;
  EXPECT_EQ(balancing_tokens(dims).size(), 3u);
}

/// Models of the same function: in one, columns of inputs and weights are of like size, in the other not.
class BalancedModels : public test::ExecutorFixture {
 protected:
  static RandomModel model(bool skewed) {
    ModelShape shape;
    shape.dims = {2, 64, 4, 2, 16, 96, 67, 4096};
    shape.tied = false;
    RandomModel model(shape);
    if (!skewed) return model;
    Plan& plan = model.plan();
    for (const NormQkvStage* stage : all<NormQkvStage>(plan)) {
      skew(model, {stage->q_proj, stage->k_proj, stage->v_proj}, stage->norm, 1);
    }
    for (const NormGateUpStage* stage : all<NormGateUpStage>(plan)) {
      skew(model, {stage->gate_proj, stage->up_proj}, stage->norm, 1);
    }
    for (std::size_t layer = 0; layer < 2; ++layer) {
      const WeightId down = all<ProjectAddStage>(plan)[2 * layer + 1]->weight;
      skew(model, {down}, all<NormGateUpStage>(plan)[layer]->up_proj, 64);
    }
    skew(model, {all<NormHeadStage>(plan)[0]->head}, all<NormHeadStage>(plan)[0]->norm, 1);
    return model;
  }

  /// Multiplies columns of matrices by powers of two and divides what gives their input by them.
  static void skew(RandomModel& model, const std::vector<WeightId>& matrices, WeightId giver,
                   std::int64_t columns_of_giver) {
    const auto values = [&](WeightId id) {
      return std::span(reinterpret_cast<float*>(model.storage(id).data()),
                       model.storage(id).size() / sizeof(float));
    };
    const auto factor = [](std::size_t j) { return std::ldexp(1.0f, static_cast<int>(j * 13 % 9) - 4); };
    for (const WeightId id : matrices) {
      const auto cols = static_cast<std::size_t>(model.plan().weight(id).cols);
      for (std::size_t i = 0; i < values(id).size(); ++i) values(id)[i] *= factor(i % cols);
    }
    const std::span<float> given = values(giver);
    for (std::size_t i = 0; i < given.size(); ++i) {
      given[i] /= factor(i / static_cast<std::size_t>(columns_of_giver));
    }
  }

  /// Root mean square distance of logits from exact ones, 40 tokens one by one.
  static double error(const RandomModel& model) {
    const auto exact = find_device("reference", model.plan()).compile(model.plan(), {});
    const auto rounded = compile(model);
    const auto exact_line = exact->new_timeline(), rounded_line = rounded->new_timeline();
    double sum = 0;
    for (const TokenId token : test::random_tokens(40)) {
      const Slice exact_slice{exact_line.get(), {&token, 1}, Want::last};
      const Slice rounded_slice{rounded_line.get(), {&token, 1}, Want::last};
      const auto expected = exact->run({&exact_slice, 1}).front().logits;
      const auto actual = rounded->run({&rounded_slice, 1}).front().logits;
      for (std::size_t i = 0; i < expected.size(); ++i) {
        sum += std::pow(static_cast<double>(actual[i]) - static_cast<double>(expected[i]), 2);
      }
    }
    return std::sqrt(sum / (40 * 67));
  }
};

TEST_P(BalancedModels, LoseNoMoreForColumnsOfUnlikeSize) {
  EXPECT_LT(error(model(true)), 1.3 * error(model(false)));
}

TEST_P(BalancedModels, GiveTheSameWhenFoundPacked) {
  const RandomModel skewed = model(true);
  const Device& device = find_device("cpu", skewed.plan());
  const auto options = [](Bytes packed) {
    DeviceOptions with;
    with.threads = 2;
    with.kernels = std::string(GetParam().kernels->name);
    with.weights = GetParam().weights;
    with.packed = packed;
    return with;
  };
  const std::vector<TokenId> tokens = test::random_tokens(20);
  const auto logits = [&](Executor& executor) {
    return feed(executor, *executor.new_timeline(), tokens, Want::all);
  };
  const auto first = device.compile(skewed.plan(), options({}));
  const Bytes written = first->packed_weights();
  const auto second = device.compile(skewed.plan(), options(written));
  EXPECT_EQ(second->packed_weights().data(), written.data());
  EXPECT_EQ(logits(*second), logits(*first));

  // Factors that are not those of the panels. The last are those of the head.
  AlignedBuffer damaged(written.size());
  std::ranges::copy(written, damaged.data());
  damaged.as<float>().back() *= 2;
  const auto third = device.compile(skewed.plan(), options({damaged.data(), damaged.size()}));
  EXPECT_NE(third->packed_weights().data(), damaged.data());
  EXPECT_EQ(logits(*third), logits(*first));
}

std::vector<test::Way> rounding_ways() {
  std::vector<test::Way> ways = test::all_ways();
  std::erase_if(ways, [](const test::Way& way) { return std::string_view(way.weights) == "auto"; });
  return ways;
}

INSTANTIATE_TEST_SUITE_P(Kernels, BalancedModels, testing::ValuesIn(rounding_ways()), test::way_name);

}  // namespace
}  // namespace qgen
