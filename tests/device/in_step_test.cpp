// Two executors walk the same random models in step; the first stage that differs is named.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <ostream>
#include <string>

#include "device/executor_fixture.h"
#include "qgen/device/device.h"
#include "qgen/kernels/kernel_table.h"
#include "support/random_model.h"

namespace qgen {
namespace {

using test::ModelShape;
using test::RandomModel;

struct Case {
  const char* name;
  ModelShape shape;
};

std::vector<Case> cases() {
  std::vector<Case> all;
  const auto add = [&](const char* name, auto change) {
    ModelShape shape;
    change(shape);
    all.push_back({name, shape});
  };
  add("Plain", [](ModelShape&) {});
  add("OneHeadEach", [](ModelShape& s) { s.dims.kv_heads = 4; });
  add("OneKeyHeadForAll", [](ModelShape& s) { s.dims.kv_heads = 1; });
  add("WideHeads", [](ModelShape& s) { s.dims.head_dim = 80; });
  add("TinyHeads", [](ModelShape& s) { s.dims.head_dim = 2; });
  add("OddWidths", [](ModelShape& s) {
    s.dims.width = 37;
    s.dims.feed_forward = 53;
    s.dims.head_dim = 6;
  });
  add("Bf16", [](ModelShape& s) { s.dtypes = {DType::bf16}; });
  add("F16", [](ModelShape& s) { s.dtypes = {DType::f16}; });
  add("MixedTypes", [](ModelShape& s) { s.dtypes = {DType::bf16, DType::f32, DType::f16, DType::f32}; });
  add("BlocksOf32", [](ModelShape& s) {
    s.dims.width = 64;
    s.dims.head_dim = 32;
    s.dims.feed_forward = 96;
    s.qkv_bias = s.o_bias = true;
    s.dtypes = {DType::q8_0, DType::q4_0, DType::f16};
  });
  add("BlocksOf256", [](ModelShape& s) {
    s.dims.width = 256;
    s.dims.feed_forward = 512;
    s.dtypes = {DType::q6_k, DType::q4_k};
  });
  add("Biases", [](ModelShape& s) { s.qkv_bias = s.o_bias = true; });
  add("NoHeadNorm", [](ModelShape& s) { s.qk_norm = false; });
  add("Untied", [](ModelShape& s) { s.tied = false; });
  add("AdjacentPairs", [](ModelShape& s) { s.pairs = RopePairs::adjacent; });
  add("ScaledRope", [](ModelShape& s) { s.rope_scale = 1.3f; });
  add("ManyQueryHeads", [](ModelShape& s) {
    s.dims.heads = 40;
    s.dims.kv_heads = 1;
  });
  const auto experts = [](ModelShape& s, std::int64_t count, std::int64_t chosen) {
    s.dims.experts = count;
    s.dims.experts_per_token = chosen;
    s.dims.expert_width = 24;
  };
  add("Experts", [&](ModelShape& s) { experts(s, 8, 2); });
  add("OneExpert", [&](ModelShape& s) { experts(s, 1, 1); });
  add("AllExperts", [&](ModelShape& s) { experts(s, 5, 5); });
  add("ManyExperts", [&](ModelShape& s) {
    experts(s, 70, 3);
    s.norm_topk_prob = false;
  });
  add("ExpertsOfMixedTypes", [&](ModelShape& s) {
    experts(s, 6, 2);
    s.dtypes = {DType::bf16, DType::f32, DType::f16, DType::f32};
  });
  add("ExpertsOfOddWidths", [&](ModelShape& s) {
    experts(s, 7, 3);
    s.dims.width = 37;
    s.dims.expert_width = 53;
    s.dtypes = {DType::bf16};
  });
  add("ExpertsInTheLastLayerOnly", [&](ModelShape& s) {
    experts(s, 4, 2);
    s.dense_layers = {0};
    s.dims.expert_width = 40;  // two of them are wider than the other layer
    s.norm_topk_prob = false;
  });
  return all;
}

using Outputs = std::vector<std::vector<float>>;

/// Stage outputs of each step when `tokens` are fed in pieces of the given lengths.
Outputs run(const RandomModel& model, const Device& device, const DeviceOptions& options,
            const std::vector<TokenId>& tokens, const std::vector<std::size_t>& pieces) {
  const auto executor = device.compile(model.plan(), options);
  Outputs outputs;
  executor->set_observer([&](std::size_t, std::span<const float> values) {
    outputs.emplace_back(values.begin(), values.end());
  });
  const auto timeline = executor->new_timeline();
  std::size_t at = 0;
  for (const std::size_t piece : pieces) {
    const Slice slice{timeline.get(), std::span(tokens).subspan(at, piece), Want::all};
    executor->run({&slice, 1});
    at += piece;
  }
  return outputs;
}

/// Distance relative to the expected vector's length, the measure in which rounding errors of products are
/// bounded.
double relative_error(const std::vector<float>& actual, const std::vector<float>& expected) {
  double difference = 0, length = 0;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    difference += std::pow(static_cast<double>(actual[i]) - static_cast<double>(expected[i]), 2);
    length += std::pow(static_cast<double>(expected[i]), 2);
  }
  return std::sqrt(difference / length);
}

/// How far a stage may be off. Each of the ~5 roundings that a value passes in a stage adds about one unit in
/// the last place of the coarsest format on its way (f32 sums of up to 128 terms: sqrt(128) units); the
/// layers' non-linear parts pass errors on enlarged by a small factor, for which 16 stands. Weights held as
/// integers round inputs by 16319ths of a group's largest number, about three times their size, and uniform
/// errors are 1/sqrt(12) of a step: 2^-14, of which half is enough; or, for `bytes`, by 127ths: 2^-7.
double tolerance(KvType kv, bool rounds, bool integers, bool bytes, std::size_t stages) {
  double unit = integers ? 0x1p-15 : 0x1p-24 * std::sqrt(128.0);
  if (kv == KvType::f16) unit = 0x1p-11;
  if (kv == KvType::bf16 || kv == KvType::q8 || rounds) unit = 0x1p-8;
  if (bytes) unit = 0x1p-7;
  return 16 * unit * std::sqrt(static_cast<double>(stages));
}

void PrintTo(const Case& model, std::ostream* out) {
  *out << model.name;
}

class InStep : public testing::TestWithParam<Case> {
 protected:
  void compare(KvType kv, const char* kv_name, const std::vector<std::size_t>& pieces,
               const char* weights = "auto") {
    const RandomModel model(GetParam().shape);
    const std::vector<TokenId> tokens = test::random_tokens(std::reduce(pieces.begin(), pieces.end()), 7);
    const Outputs expected = run(model, find_device("reference", model.plan()), {}, tokens, pieces);
    ASSERT_EQ(expected.size(), pieces.size() * model.plan().stages.size());
    const bool many = *std::ranges::max_element(pieces) > static_cast<std::size_t>(kManyTokens);
    for (const KernelTable* kernels : available_kernels()) {
      SCOPED_TRACE("kernels " + std::string(kernels->name));
      DeviceOptions options;
      options.threads = 2;
      options.kernels = std::string(kernels->name);
      options.kv = kv_name;
      options.weights = weights;
      const Outputs actual = run(model, find_device("cpu", model.plan()), options, tokens, pieces);
      const bool rounds = options.weights != "auto" || (kernels->probe.bf16 != nullptr && many);
      compare(model.plan(), actual, expected, allowed(kv, rounds, many, model.plan().stages.size()));
    }
  }

 private:
  static double allowed(KvType kv, bool rounds, bool many, std::size_t stages) {
    const auto has = [](auto kind) { return std::ranges::any_of(GetParam().shape.dtypes, kind); };
    const bool integers = has([](DType dtype) { return block_elements(dtype) > 1; });
    const bool bytes = many && has([](DType dtype) { return dtype == DType::q4_0 || dtype == DType::q4_k; });
    return tolerance(kv, rounds, integers, bytes, stages);
  }

  static void compare(const Plan& plan, const Outputs& actual, const Outputs& expected, double allowed) {
    ASSERT_EQ(actual.size(), expected.size());
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const auto where = [&] {
        return stage_name(plan.stages[i % plan.stages.size()]) + " in piece " +
               std::to_string(i / plan.stages.size());
      };
      ASSERT_EQ(actual[i].size(), expected[i].size()) << where();
      // Negated so that NaN fails.
      ASSERT_FALSE(!(relative_error(actual[i], expected[i]) <= allowed))
          << "first difference: " << where() << ", off by " << relative_error(actual[i], expected[i])
          << ", allowed " << allowed;
    }
  }
};

TEST_P(InStep, TokenByToken) {
  compare(KvType::f32, "f32", {1, 1, 1, 1, 1});
}
TEST_P(InStep, FewTokensAtOnce) {
  compare(KvType::f32, "f32", {3, 16, 2});
}
TEST_P(InStep, ManyTokensThenFew) {
  compare(KvType::f32, "f32", {37, 1, 5});
}
TEST_P(InStep, AcrossCacheChunks) {
  compare(KvType::f32, "f32", {250, 10, 1, 40});
}
TEST_P(InStep, F16Cache) {
  compare(KvType::f16, "f16", {5, 20, 1});
}
TEST_P(InStep, Bf16Cache) {
  compare(KvType::bf16, "bf16", {5, 20, 1});
}

TEST_P(InStep, Q8Cache) {
  compare(KvType::q8, "q8", {5, 20, 1});
}
TEST_P(InStep, Bf16Weights) {
  compare(KvType::f32, "f32", {5, 20, 1}, "bf16");
}
TEST_P(InStep, Q8Weights) {
  compare(KvType::f32, "f32", {5, 20, 1}, "q8");
}

INSTANTIATE_TEST_SUITE_P(Models, InStep, testing::ValuesIn(cases()),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace qgen
