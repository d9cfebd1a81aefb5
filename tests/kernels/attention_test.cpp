#include "kernels/attention.h"

namespace qgen::test {
namespace {

using AttentionTest = KernelTest;
QGEN_FOR_ALL_TABLES(AttentionTest);

TEST_P(AttentionTest, MatchesReferenceForAllHeadSizesAndCounts) {
  RandomFloats random(1);
  for (const KvType type : kTypes) {
    for (const std::int64_t head_dim : {2, 6, 64, 66, 80, 128, 136, 256}) {
      Chunk chunk(table(), type, head_dim);
      fill(chunk, random, kKvChunk, head_dim);
      const std::vector<std::int32_t> visible{1,   2,   15,  16,  17,  33,  64, 65,
                                              100, 127, 200, 255, 256, 256, 256};
      const auto queries = static_cast<std::int64_t>(visible.size());
      const auto q = make_queries(random, queries, head_dim);
      expect_near_reference(attend(table(), type, chunk, q, head_dim, visible), chunk, q, head_dim, visible,
                            0);
    }
  }
}

TEST_P(AttentionTest, BulkMatchesReferenceForAllHeadSizesAndCounts) {
  expect_bulk_near_reference(table(), table().probe.bf16 != nullptr ? kBf16Unit : 0);
}

TEST_P(AttentionTest, NonFiniteKeysValuesAndQueriesShowInBulk) {
  expect_non_finite_to_show(table(), true);
}

TEST_P(AttentionTest, QueriesGetTheSameBitsAloneAndTogetherWhateverLiesBeyond) {
  expect_same_bits_alone_and_together(table(), false);
}

TEST_P(AttentionTest, QueriesGetTheSameBitsAloneAndTogetherInBulk) {
  expect_same_bits_alone_and_together(table(), true);
}

TEST_P(AttentionTest, NothingVisibleGivesNothing) {
  expect_nothing_from_nothing_visible(table(), false);
  expect_nothing_from_nothing_visible(table(), true);
}

TEST_P(AttentionTest, NonFiniteKeysValuesAndQueriesShow) {
  expect_non_finite_to_show(table(), false);
}

TEST_P(AttentionTest, MergedChunksEqualOneSoftmax) {
  constexpr std::int64_t kDim = 70;
  RandomFloats random(4);
  Chunk chunk(table(), KvType::f32, kDim), upper(table(), KvType::f32, kDim);
  for (std::int64_t p = 0; p < 200; ++p) {
    const auto k = random.vector(kDim), v = random.vector(kDim);
    chunk.store(p, k.data(), v.data());
    if (p >= 90) upper.store(p - 90, k.data(), v.data());
  }
  const auto q = make_queries(random, 1, kDim);
  const Expected expected(chunk, q.data(), 200, kDim);
  const Attended a = attend(table(), KvType::f32, chunk, q, kDim, {90});
  const Attended b = attend(table(), KvType::f32, upper, q, kDim, {110});
  const Attended none = attend(table(), KvType::f32, upper, q, kDim, {0});
  Attended forth = a, back = b;
  const auto merge = [&](Attended& into, const Attended& from) {
    table().merge(from.out.data(), from.max[0], from.sum[0], kDim, into.out.data(), into.max.data(),
                  into.sum.data());
  };
  merge(forth, none);
  EXPECT_EQ(forth, a);
  merge(forth, b);
  merge(back, a);
  Attended from_none = none;
  merge(from_none, forth);
  EXPECT_EQ(from_none, forth);
  for (const Attended& merged : {forth, back}) {
    EXPECT_EQ(merged.max[0], std::max(a.max[0], b.max[0]));
    for (std::size_t d = 0; d < kDim; ++d) {
      ASSERT_NEAR(static_cast<double>(merged.out[d] / merged.sum[0]), expected.out[d], expected.tolerance[d]);
    }
  }
}

TEST_P(AttentionTest, MergeKeepsNaNFromEitherSide) {
  const std::vector<float> good{1.0f, 2.0f};
  for (const bool in_a : {false, true}) {
    std::vector<float> a = good, b = good;
    float max_a = 0.5f, sum_a = in_a ? kNan : 1.0f;
    (in_a ? a : b)[1] = kNan;
    table().merge(b.data(), in_a ? 0.1f : -kInfinity, in_a ? 1.0f : kNan, 2, a.data(), &max_a, &sum_a);
    EXPECT_TRUE(std::isnan(sum_a));
    EXPECT_TRUE(std::isnan(a[1]));
  }
}

TEST_P(AttentionTest, MergeForgetsPartsThatAreFarBelowTheOther) {
  for (const float below : {100.0f, 1e6f, kInfinity}) {
    std::vector<float> a{0.0f}, b{1e30f};
    float max_a = 2.0f, sum_a = 3.0f;
    table().merge(b.data(), max_a - below, 4.0f, 1, a.data(), &max_a, &sum_a);
    EXPECT_EQ(a[0], 0.0f);
    EXPECT_EQ(max_a, 2.0f);
    EXPECT_EQ(sum_a, 3.0f);
  }
}

TEST_P(AttentionTest, MergesOnAllLengths) {
  RandomFloats random(5);
  for (std::int64_t n = 0; n <= 2 * lanes() + 1; ++n) {
    const auto a = random.vector(n), b = random.vector(n);
    const GuardedBytes out(static_cast<std::size_t>(n) * sizeof(float));
    std::ranges::copy(a, out.floats());
    float max_a = 1.0f, sum_a = 3.0f;
    table().merge(b.data(), 2.5f, 2.0f, n, out.floats(), &max_a, &sum_a);
    EXPECT_EQ(max_a, 2.5f);
    EXPECT_NEAR(static_cast<double>(sum_a), 3 * std::exp(-1.5) + 2, 8 * kUnit * 3);
    for (std::int64_t i = 0; i < n; ++i) {
      const auto x = static_cast<double>(a[static_cast<std::size_t>(i)]) * std::exp(-1.5);
      const auto y = static_cast<double>(b[static_cast<std::size_t>(i)]);
      ASSERT_NEAR(static_cast<double>(out.floats()[i]), x + y, 6 * kUnit * (std::abs(x) + std::abs(y)));
    }
  }
}

TEST_P(AttentionTest, BytesAreRoundedToNearestByTheLargestOfTheVector) {
  constexpr std::int64_t kDim = 24;
  RandomFloats random(7);
  Chunk chunk(table(), KvType::q8, kDim);
  std::int64_t position = 0;
  for (const float size : {1e-29f, 1e-6f, 1.0f, 1e5f, 3e38f}) {
    auto x = random.vector(kDim);
    const float largest = std::abs(*std::ranges::max_element(x, {}, [](float v) { return std::abs(v); }));
    for (float& value : x) value = value / largest * size;
    chunk.store(position, x.data(), x.data());
    const double scale = static_cast<double>(chunk.k_scale(position));
    EXPECT_NEAR(scale, static_cast<double>(size) / 127, 4 * kUnit * static_cast<double>(size));
    for (std::int64_t d = 0; d < kDim; ++d) {
      const auto value = static_cast<double>(x[static_cast<std::size_t>(d)]);
      ASSERT_NEAR(chunk.k(position, d), value, 0.5001 * scale) << size << " " << d;
      ASSERT_NEAR(chunk.v(position, d), value, 0.5001 * scale) << size << " " << d;
    }
    ++position;
  }
  const std::vector<float> zeros(kDim, 0.0f);
  chunk.store(position, zeros.data(), zeros.data());
  for (std::int64_t d = 0; d < kDim; ++d) EXPECT_EQ(chunk.k(position, d), 0.0);
}

TEST_P(AttentionTest, HalvesKeepTheRangeOfFloats) {
  constexpr std::int64_t kDim = 24;
  RandomFloats random(6);
  Chunk chunk(table(), KvType::f16, kDim);
  std::int64_t position = 0;
  for (const float size :
       {1e-45f, 1e-40f, 1e-38f, 1e-20f, 1e-6f, 1e-3f, 1.0f, 1e3f, 3e4f, 1e5f, 1e20f, 3e38f}) {
    auto x = random.vector(kDim);
    const float largest = std::abs(*std::ranges::max_element(x, {}, [](float v) { return std::abs(v); }));
    for (float& value : x) value = value / largest * size;
    chunk.store(position, x.data(), x.data());
    int exponent = 0;
    EXPECT_EQ(std::frexp(chunk.k_scale(position), &exponent), 0.5f) << size << ": a power of two";
    if (size >= 1e-3f && size <= 3e4f) {
      EXPECT_EQ(chunk.k_scale(position), 1.0f) << size;
    }
    // Half a unit in the last of eleven bits, or of the lowest bit of a scaled half; that stays small beside
    // the vector as a whole.
    const double lowest = 0x1p-25 * static_cast<double>(chunk.k_scale(position));
    EXPECT_LE(lowest, std::max(0x1p-11 * static_cast<double>(size), 0x1p-150));
    for (std::int64_t d = 0; d < kDim; ++d) {
      const auto value = static_cast<double>(x[static_cast<std::size_t>(d)]);
      const double tolerance = std::max(0x1p-11 * std::abs(value), lowest);
      ASSERT_NEAR(chunk.k(position, d), value, tolerance) << size << " " << d;
      ASSERT_NEAR(chunk.v(position, d), value, tolerance) << size << " " << d;
    }
    ++position;
  }
  const std::vector<float> zeros(kDim, 0.0f);
  chunk.store(position, zeros.data(), zeros.data());
  EXPECT_EQ(chunk.k_scale(position), 1.0f);
}

}  // namespace
}  // namespace qgen::test
