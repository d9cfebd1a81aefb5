#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <random>

#include "device/cpu/step.h"
#include "device/executor_fixture.h"
#include "qgen/device/device.h"
#include "qgen/kernels/kernel_table.h"
#include "support/random_model.h"

namespace qgen {
namespace {

using test::bits;
using test::ModelShape;
using test::random_tokens;
using test::RandomModel;

class ExecutorTest : public test::ExecutorFixture {
 protected:
  static RandomModel bf16_model() {
    ModelShape shape;
    shape.dtypes = {DType::bf16};
    shape.dims.head_dim = 16;
    shape.dims.kv_heads = 2;
    return RandomModel(shape);
  }
};

TEST_P(ExecutorTest, RunsOnTheForcedKernels) {
  EXPECT_EQ(compile(bf16_model())
                ->description()
                .rfind("cpu: " + std::string(GetParam().kernels->name) + " kernels", 0),
            0u);
}

TEST_P(ExecutorTest, LogitsAreTheSameBitsAtAnyThreadCount) {
  const RandomModel model = bf16_model();
  const std::vector<TokenId> prompt = random_tokens(300);
  std::vector<std::vector<std::uint32_t>> expected;
  for (const int threads : {1, 2, 3, 4, 7}) {
    const auto executor = compile(model, threads);
    const auto timeline = executor->new_timeline();
    std::vector<std::vector<std::uint32_t>> actual;
    actual.push_back(feed(*executor, *timeline, prompt, Want::all));
    for (const TokenId token : random_tokens(5, 9)) actual.push_back(feed(*executor, *timeline, {&token, 1}));
    actual.push_back(feed(*executor, *timeline, random_tokens(11, 10), Want::all));
    if (threads == 1) expected = actual;
    EXPECT_EQ(actual, expected) << threads << " threads";
  }
}

TEST_P(ExecutorTest, UpToSixteenRowsAreTheSameBitsAsOneByOne) {
  const RandomModel model = bf16_model();
  const std::vector<TokenId> tokens = random_tokens(16);
  const auto executor = compile(model, 2);
  const auto single = executor->new_timeline();
  std::vector<std::vector<std::uint32_t>> expected;
  for (const TokenId& token : tokens) expected.push_back(feed(*executor, *single, {&token, 1}));
  for (std::size_t count = 2; count <= 16; ++count) {
    const auto timeline = executor->new_timeline();
    EXPECT_EQ(feed(*executor, *timeline, std::span(tokens).first(count)), expected[count - 1])
        << count << " rows";
  }
}

TEST_P(ExecutorTest, TimelinesThatStepTogetherDoNotSeeEachOther) {
  const RandomModel model = bf16_model();
  const auto executor = compile(model, 2);
  std::vector<std::unique_ptr<Timeline>> alone, together;
  std::vector<std::vector<TokenId>> prompts;
  for (std::uint32_t i = 0; i < 5; ++i) {
    prompts.push_back(random_tokens(1 + 7 * i, i));
    alone.push_back(executor->new_timeline());
    together.push_back(executor->new_timeline());
    feed(*executor, *alone.back(), prompts.back(), Want::none);
    feed(*executor, *together.back(), prompts.back(), Want::none);
  }
  const std::vector<TokenId> next = random_tokens(5, 77);
  std::vector<Slice> slices;
  for (std::size_t i = 0; i < 5; ++i) slices.push_back({together[i].get(), {&next[i], 1}, Want::last});
  std::vector<std::vector<std::uint32_t>> actual;
  for (const SliceResult& result : executor->run(slices)) actual.push_back(bits(result.logits));
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(actual[i], feed(*executor, *alone[i], {&next[i], 1})) << "timeline " << i;
  }
}

TEST_P(ExecutorTest, TruncateThenFeedingAgainIsAFreshRun) {
  const RandomModel model = bf16_model();
  const auto executor = compile(model, 2);
  const std::vector<TokenId> tokens = random_tokens(600);
  const std::vector<TokenId> tail = random_tokens(9, 5);
  for (const std::int64_t keep : {0, 1, 255, 256, 257, 599}) {
    const auto fresh = executor->new_timeline();
    feed(*executor, *fresh, std::span(tokens).first(static_cast<std::size_t>(keep)), Want::none);
    const auto used = executor->new_timeline();
    feed(*executor, *used, std::span(tokens).first(static_cast<std::size_t>(keep)), Want::none);
    feed(*executor, *used, std::span(tokens).subspan(static_cast<std::size_t>(keep)), Want::none);
    used->truncate(keep);
    EXPECT_EQ(used->position(), keep);
    EXPECT_EQ(feed(*executor, *used, tail, Want::all), feed(*executor, *fresh, tail, Want::all))
        << "at " << keep;
  }
}

TEST_P(ExecutorTest, ForksGoTheirOwnWays) {
  const RandomModel model = bf16_model();
  const auto executor = compile(model, 2);
  const std::vector<TokenId> past = random_tokens(260);
  const std::vector<TokenId> left = random_tokens(3, 5), right = random_tokens(3, 6);
  const auto run_fresh = [&](const std::vector<TokenId>& end) {
    const auto timeline = executor->new_timeline();
    feed(*executor, *timeline, past, Want::none);
    return feed(*executor, *timeline, end);
  };
  const auto trunk = executor->new_timeline();
  feed(*executor, *trunk, past, Want::none);
  const auto branch = trunk->fork();
  EXPECT_EQ(branch->position(), 260);
  EXPECT_EQ(feed(*executor, *trunk, left), run_fresh(left));
  EXPECT_EQ(feed(*executor, *branch, right), run_fresh(right));
}

TEST_P(ExecutorTest, AnyPrefillChunkingGivesTheSameLogitsWithinRounding) {
  const RandomModel model = bf16_model();
  const auto executor = compile(model, 2);
  const std::vector<TokenId> tokens = random_tokens(200);
  const auto whole = executor->new_timeline();
  const Slice all{whole.get(), tokens, Want::last};
  const SliceResult result = executor->run({&all, 1}).front();
  const std::vector<float> expected(result.logits.begin(), result.logits.end());
  float largest = 0;
  for (const float value : expected) largest = std::max(largest, std::abs(value));
  std::mt19937 random(1);
  for (int trial = 0; trial < 5; ++trial) {
    const auto timeline = executor->new_timeline();
    std::vector<float> actual;
    for (std::size_t at = 0; at < tokens.size();) {
      const std::size_t count = std::min<std::size_t>(1 + random() % 60, tokens.size() - at);
      const Slice slice{timeline.get(), std::span(tokens).subspan(at, count), Want::last};
      const SliceResult part = executor->run({&slice, 1}).front();
      actual.assign(part.logits.begin(), part.logits.end());
      at += count;
    }
    // Inputs of large pieces may be rounded to bf16 (8 bits), those of small ones are not.
    for (std::size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(actual[i], expected[i], largest * 0x1p-6f);
  }
}

TEST_P(ExecutorTest, BestIsTheArgMaxOfTheLogits) {
  const RandomModel model = bf16_model();
  for (const int threads : {1, 3}) {
    const auto executor = compile(model, threads);
    const auto first = executor->new_timeline(), second = executor->new_timeline();
    for (const TokenId& token : random_tokens(20)) {
      const Slice best{first.get(), {&token, 1}, Want::best};
      const SliceResult result = executor->run({&best, 1}).front();
      const Slice last{second.get(), {&token, 1}, Want::last};
      const auto logits = executor->run({&last, 1}).front().logits;
      EXPECT_EQ(result.best, std::max_element(logits.begin(), logits.end()) - logits.begin());
      EXPECT_EQ(result.not_finite, -1);
    }
  }
}

TEST_P(ExecutorTest, BestNeverNamesAnIdThatIsNotAllowed) {
  const RandomModel model = bf16_model();
  const auto executor = compile(model, 2);
  std::vector<bool> allowed(60);  // shorter than the vocabulary: the rest is padding
  for (std::size_t id = 0; id < allowed.size(); id += 3) allowed[id] = true;
  executor->set_allowed(allowed);
  const auto timeline = executor->new_timeline();
  for (const TokenId& token : random_tokens(30)) {
    const Slice slice{timeline.get(), {&token, 1}, Want::best};
    const TokenId best = executor->run({&slice, 1}).front().best;
    ASSERT_GE(best, 0);
    ASSERT_LT(best, 60);
    EXPECT_EQ(best % 3, 0);
  }
}

TEST_P(ExecutorTest, BestReportsTheFirstLogitThatIsNotFinite) {
  RandomModel model({});
  const auto& head = std::get<NormHeadStage>(model.plan().stages.back());
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const TokenId token = 1;
  std::memcpy(model.storage(head.head).data() + (41 * 32 + 5) * 4, &nan, 4);
  std::memcpy(model.storage(head.head).data() + (50 * 32 + 5) * 4, &nan, 4);
  const auto executor = compile(model, 2);
  const auto timeline = executor->new_timeline();
  const Slice slice{timeline.get(), {&token, 1}, Want::best};
  EXPECT_EQ(executor->run({&slice, 1}).front().not_finite, 41);
}

TEST_P(ExecutorTest, EmptyStepsChangeNothing) {
  const RandomModel model = bf16_model();
  const auto executor = compile(model, 2);
  const auto timeline = executor->new_timeline();
  EXPECT_TRUE(feed(*executor, *timeline, {}).empty());
  EXPECT_TRUE(executor->run({}).empty());
  EXPECT_EQ(timeline->position(), 0);
}

TEST_P(ExecutorTest, CountsTheBytesThatAStepReads) {
  ModelShape shape;
  shape.dtypes = {DType::bf16};
  shape.dims = {1, 256, 4, 2, 64, 512, 192, 64};  // no panel of these needs padding
  // Matrices in elements: q 256x256, k and v 128x256, o 256x256, gate and up 512x256, down 256x512, head
  // 192x256.
  const std::int64_t elements = 256 * (256 + 2 * 128 + 256 + 3 * 512 + 192);
  // Norms 256, 256, 256, 64, 64 in f32, and one row of the table in bf16.
  const std::int64_t others = (3 * 256 + 2 * 64) * 4 + 256 * 2;
  const std::string_view weights = GetParam().weights;
  const double bits = weights == "q8" ? 8.5 : weights == "q4" ? 4.5 : 16;
  const auto expected = static_cast<std::int64_t>(static_cast<double>(elements) * bits / 8) + others;
  for (const bool tied : {true, false}) {
    shape.tied = tied;
    EXPECT_EQ(compile(RandomModel(shape))->weight_bytes_per_token(), expected);
  }
}

TEST_P(ExecutorTest, SharingRowsOutChangesNothing) {
  ModelShape shape;
  // Large enough for shares to be cut, and matrices of one stage that want other forms of their input.
  shape.dims = {2, 256, 8, 4, 64, 1536, 2048, 64};
  shape.dtypes = {DType::bf16, DType::q8_0, DType::q4_0};
  const RandomModel model(shape);
  const auto decode = [&](int threads) {
    const auto executor = compile(model, threads);
    const auto timeline = executor->new_timeline();
    std::vector<test::Bits> steps;
    for (TokenId token = 0; token < 12; ++token) steps.push_back(feed(*executor, *timeline, {&token, 1}));
    return steps;
  };
  const std::vector<test::Bits> alone = decode(1);
  for (const int threads : {2, 3}) EXPECT_EQ(decode(threads), alone) << threads;
}

TEST(KeepBest, GivesTheLowestIdInWhateverOrderPartsCome) {
  const BestLogit none, low{3, 2.5f, -1}, high{9, 2.5f, 7}, damaged{-1, 0, 5};
  const auto joined = [](std::initializer_list<BestLogit> parts) {
    BestLogit kept;
    for (const BestLogit& part : parts) keep_best(kept, part);
    return kept;
  };
  for (const BestLogit& best : {joined({low, high, damaged, none}), joined({none, damaged, high, low}),
                                joined({high, low, none, damaged})}) {
    EXPECT_EQ(best.index, 3);
    EXPECT_EQ(best.value, 2.5f);
    EXPECT_EQ(best.not_finite, 5);
  }
  EXPECT_EQ(joined({low, {1, 2.0f, -1}}).index, 3);
  EXPECT_EQ(joined({none, damaged}).index, -1);
}

/// Rounding them anew, in rotated groups, would lose something.
TEST(ExecutorWeights, StoredBlocksThatQ8HoldsStayAsTheyAreWithQ8) {
  ModelShape shape;
  shape.dtypes = {DType::q8_0};
  shape.dims = {1, 256, 4, 2, 64, 512, 192, 64};
  const RandomModel model(shape);
  const std::vector<TokenId> tokens = test::random_tokens(20, 1);
  for (const KernelTable* kernels : available_kernels()) {
    const auto logits = [&](const char* weights) {
      DeviceOptions options;
      options.kernels = std::string(kernels->name);
      options.weights = weights;
      const auto executor = find_device("cpu", model.plan()).compile(model.plan(), options);
      const auto timeline = executor->new_timeline();
      const Slice slice{timeline.get(), tokens, Want::last};
      return test::bits(executor->run({&slice, 1}).front().logits);
    };
    EXPECT_EQ(logits("q8"), logits("auto")) << kernels->name;
    EXPECT_NE(logits("q4"), logits("auto")) << kernels->name;
  }
}

TEST_P(ExecutorTest, CountsAMatrixOfOneRowOnce) {
  const auto bytes = [&](std::int64_t feed_forward) {
    ModelShape shape;
    shape.dims.feed_forward = feed_forward;
    return compile(RandomModel(shape))->weight_bytes_per_token();
  };
  EXPECT_EQ(bytes(1), bytes(2)) << "one panel either way";
}

TEST_P(ExecutorTest, GivesBackTheSourceOfEveryMatrix) {
  const RandomModel model = bf16_model();
  std::mutex mutex;
  std::map<const std::byte*, int> times;
  DeviceOptions options;
  options.threads = 3;
  options.kernels = std::string(GetParam().kernels->name);
  options.weights = GetParam().weights;
  options.consumed = [&](Bytes part) {
    const std::lock_guard lock(mutex);
    for (const std::byte& byte : part) ++times[&byte];
  };
  const auto executor = find_device("cpu", model.plan()).compile(model.plan(), options);
  std::size_t expected = 0;
  for (const PlanWeight& weight : model.plan().weights) {
    if (weight.view.rows == 1) continue;
    const Bytes all(weight.view.data, static_cast<std::size_t>(weight.view.bytes()));
    expected += all.size();
    // What its rows are divided by is only known when it has been multiplied by once.
    const bool twice = weight.name == "up_proj" && options.weights != "auto";
    EXPECT_TRUE(std::ranges::all_of(all, [&](const std::byte& byte) {
      return times[&byte] == (twice ? 2 : 1);
    })) << weight.name;
  }
  EXPECT_EQ(times.size(), expected) << "nothing else";
}

INSTANTIATE_TEST_SUITE_P(Kernels, ExecutorTest, testing::ValuesIn(test::all_ways()), test::way_name);

}  // namespace
}  // namespace qgen
