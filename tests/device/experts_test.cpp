// Mixtures of experts on the cpu device: what must not depend on who else is in a step, and what is read.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <random>

#include "device/executor_fixture.h"
#include "qgen/device/device.h"
#include "qgen/kernels/kernel_table.h"
#include "support/random_model.h"

namespace qgen {
namespace {

using test::bits;
using test::Bits;
using test::ModelShape;
using test::random_tokens;
using test::RandomModel;

ModelShape sparse_shape(std::int64_t experts = 6, std::int64_t per_token = 2) {
  ModelShape shape;
  shape.dtypes = {DType::bf16};
  shape.dims.head_dim = 16;
  shape.dims.experts = experts;
  shape.dims.experts_per_token = per_token;
  shape.dims.expert_width = 40;
  return shape;
}

const MoeStage& first_moe(const Plan& plan) {
  for (const Stage& stage : plan.stages) {
    if (const auto* moe = std::get_if<MoeStage>(&stage)) return *moe;
  }
  throw std::logic_error("no experts");
}

/// Fills the matrices of one expert with NaN (of 16 or 32 bits alike).
void poison(RandomModel& model, const MoeStage& stage, std::size_t expert) {
  for (const WeightId id : {stage.gate_proj[expert], stage.up_proj[expert], stage.down_proj[expert]}) {
    std::ranges::fill(model.storage(id), std::byte{0xff});
  }
}

class ExpertsTest : public test::ExecutorFixture {
 protected:
  Bits feed_new(const RandomModel& model, std::span<const TokenId> tokens) {
    const auto executor = compile(model);
    return feed(*executor, *executor->new_timeline(), tokens, Want::all);
  }

  /// The residual after the only layer. The head after it may be rounded in other ways where experts differ.
  Bits residual(const RandomModel& model, std::span<const TokenId> tokens) {
    const auto executor = compile(model);
    Bits after;
    executor->set_observer([&](std::size_t stage, std::span<const float> values) {
      if (std::holds_alternative<MoeStage>(model.plan().stages[stage])) after = bits(values);
    });
    feed(*executor, *executor->new_timeline(), tokens);
    return after;
  }
};

TEST_P(ExpertsTest, LogitsAreTheSameBitsAtAnyThreadCount) {
  const RandomModel model(sparse_shape());
  std::vector<Bits> expected;
  for (const int threads : {1, 2, 3, 4}) {
    const auto executor = compile(model, threads);
    const auto timeline = executor->new_timeline();
    std::vector<Bits> actual;
    for (const std::size_t count : {300u, 1u, 1u, 11u, 40u}) {
      actual.push_back(
          feed(*executor, *timeline, random_tokens(count, static_cast<std::uint32_t>(count)), Want::all));
    }
    if (threads == 1) expected = actual;
    EXPECT_EQ(actual, expected) << threads << " threads";
  }
}

TEST_P(ExpertsTest, UpToSixteenRowsAreTheSameBitsAsOneByOne) {
  const RandomModel model(sparse_shape());
  const std::vector<TokenId> tokens = random_tokens(16);
  const auto executor = compile(model);
  const auto single = executor->new_timeline();
  Bits expected;
  for (const TokenId& token : tokens) {
    const Bits row = feed(*executor, *single, {&token, 1}, Want::all);
    expected.insert(expected.end(), row.begin(), row.end());
    const std::size_t count = expected.size() / row.size();
    EXPECT_EQ(feed(*executor, *executor->new_timeline(), std::span(tokens).first(count), Want::all), expected)
        << count << " rows";
  }
}

TEST_P(ExpertsTest, TimelinesThatStepTogetherDoNotSeeEachOther) {
  const RandomModel model(sparse_shape());
  const auto executor = compile(model);
  const std::vector<std::vector<TokenId>> texts{random_tokens(3, 1), random_tokens(1, 2),
                                                random_tokens(9, 4)};
  std::vector<std::unique_ptr<Timeline>> timelines;
  std::vector<Slice> slices;
  for (const auto& text : texts) {
    timelines.push_back(executor->new_timeline());
    slices.push_back({timelines.back().get(), text, Want::all});
  }
  std::vector<Bits> together;
  for (const SliceResult& result : executor->run(slices)) together.push_back(bits(result.logits));
  for (std::size_t i = 0; i < texts.size(); ++i) {
    EXPECT_EQ(together[i], feed(*executor, *executor->new_timeline(), texts[i], Want::all))
        << "timeline " << i;
  }
}

TEST_P(ExpertsTest, WhereNeighboursGoChangesNothingInLargeStepsEither) {
  const RandomModel model(sparse_shape());
  const auto executor = compile(model);
  for (const std::size_t count : {20u, 100u}) {
    const std::vector<TokenId> text = random_tokens(count);
    const auto beside = [&](std::uint32_t seed) {
      const std::vector<TokenId> other = random_tokens(count, seed);
      const auto first = executor->new_timeline(), second = executor->new_timeline();
      const std::vector<Slice> slices{{first.get(), other, Want::none}, {second.get(), text, Want::all}};
      return bits(executor->run(slices).back().logits);
    };
    EXPECT_EQ(beside(50), beside(51)) << count << " tokens each";
  }
}

TEST_P(ExpertsTest, ATokenTouchesItsChosenExpertsAndNoOthers) {
  ModelShape shape = sparse_shape(8, 3);
  shape.dims.layers = 1;
  const TokenId token = 5;
  const Bits clean = residual(RandomModel(shape), {&token, 1});
  ASSERT_FALSE(clean.empty());
  std::size_t touched = 0;
  for (std::size_t expert = 0; expert < 8; ++expert) {
    RandomModel model(shape);
    poison(model, first_moe(model.plan()), expert);
    const Bits actual = residual(model, {&token, 1});
    if (std::isnan(std::bit_cast<float>(actual.front()))) {
      ++touched;
    } else {
      EXPECT_EQ(actual, clean) << "expert " << expert;
    }
  }
  EXPECT_EQ(touched, 3u);
}

TEST_P(ExpertsTest, OfEquallyProbableExpertsTheLowestAreChosen) {
  ModelShape shape = sparse_shape(6, 2);
  shape.dims.layers = 1;
  for (const std::size_t count : {1u, 30u}) {
    const std::vector<TokenId> tokens = random_tokens(count);
    for (std::size_t expert = 0; expert < 6; ++expert) {
      RandomModel model(shape);
      std::ranges::fill(model.storage(first_moe(model.plan()).router), std::byte{0});
      poison(model, first_moe(model.plan()), expert);
      EXPECT_EQ(std::isnan(std::bit_cast<float>(feed_new(model, tokens).back())), expert < 2)
          << "expert " << expert;
      const auto reference = find_device("reference", model.plan()).compile(model.plan(), {});
      EXPECT_EQ(std::isnan(std::bit_cast<float>(
                    feed(*reference, *reference->new_timeline(), tokens, Want::all).back())),
                expert < 2)
          << "expert " << expert;
    }
  }
}

TEST_P(ExpertsTest, ADamagedRouterIsNoticed) {
  RandomModel model(sparse_shape());
  // The last row: that of an expert that need not be chosen.
  std::vector<std::byte>& router = model.storage(first_moe(model.plan()).router);
  std::fill(router.end() - 2, router.end(), std::byte{0xff});
  const Bits logits = feed_new(model, random_tokens(3));
  EXPECT_TRUE(
      std::ranges::all_of(logits, [](std::uint32_t b) { return std::isnan(std::bit_cast<float>(b)); }));
}

TEST_P(ExpertsTest, CountsTheBytesOfChosenExpertsOnly) {
  ModelShape shape = sparse_shape(16, 3);
  shape.dims = {1, 256, 4, 2, 64, 0, 192, 64, 16, 3, 256};  // no panel of these needs padding
  // Matrices in elements: q 256x256, k and v 128x256, o 256x256, head 192x256, three experts of three
  // 256x256.
  const std::int64_t elements = 256 * (256 + 2 * 128 + 256 + 192 + 3 * 3 * 256);
  // The router, 16x256 in bf16 however the rest is held; norms 256, 256, 256, 64, 64 in f32; one row of the
  // table.
  const std::int64_t others = 16 * 256 * 2 + (3 * 256 + 2 * 64) * 4 + 256 * 2;
  const std::string_view weights = GetParam().weights;
  const double bits_each = weights == "q8" ? 8.5 : weights == "q4" ? 4.5 : 16;
  EXPECT_EQ(compile(RandomModel(shape))->weight_bytes_per_token(),
            static_cast<std::int64_t>(static_cast<double>(elements) * bits_each / 8) + others);
}

INSTANTIATE_TEST_SUITE_P(Kernels, ExpertsTest, testing::ValuesIn(test::all_ways()), test::way_name);

TEST(ReferenceExperts, CountsTheBytesOfChosenExpertsOnly) {
  const auto bytes = [](std::int64_t experts, std::int64_t per_token) {
    const RandomModel model(sparse_shape(experts, per_token));
    return find_device("reference", model.plan()).compile(model.plan(), {})->weight_bytes_per_token();
  };
  // Two layers of experts with three matrices of 40x32 and a row of the router each, in bf16.
  EXPECT_EQ(bytes(6, 3) - bytes(6, 2), 2 * 3 * 40 * 32 * 2);
  EXPECT_EQ(bytes(7, 2) - bytes(6, 2), 2 * 32 * 2);
}

}  // namespace
}  // namespace qgen
