#include "kernels/kernel_test.h"
#include "qgen/kernels/reference.h"

namespace qgen::test {
namespace {

using AttentionTest = KernelTest;
QGEN_FOR_ALL_TABLES(AttentionTest);

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr DType kKvDTypes[] = {DType::f32, DType::f16, DType::bf16, DType::i8};  // by KvType

bool has_scales(KvType type) {
  return type == KvType::f16 || type == KvType::q8;
}

/// A chunk of exactly its size, filled with NaN until something is stored.
class Chunk {
 public:
  Chunk(const KernelTable& table, KvType type, std::int64_t head_dim)
      : kernels_(table.kv[static_cast<std::size_t>(type)]),
        head_dim_(head_dim),
        dtype_(kKvDTypes[static_cast<std::size_t>(type)]),
        k_(bytes()),
        v_(bytes()),
        k_scale_(has_scales(type) ? kKvChunk : 0, kNan),
        v_scale_(k_scale_) {
    for (const GuardedBytes* memory : {&k_, &v_}) {
      if (type == KvType::q8) std::memset(memory->data(), 127, bytes());  // bytes have no NaN
      for (std::int64_t i = 0; type != KvType::q8 && i < kKvChunk * head_dim_; ++i) {
        write_element(memory->data() + i * element_bytes(dtype_), kNan, dtype_);
      }
    }
  }
  void store(std::int64_t position, const float* k, const float* v) {
    kernels_.store(k, v, head_dim_, position, view());
  }
  [[nodiscard]] KvChunk view() { return {k_.data(), v_.data(), k_scale_.data(), v_scale_.data()}; }
  [[nodiscard]] double k(std::int64_t position, std::int64_t d) {
    return read(k_, (position / kKvLanes * head_dim_ + d) * kKvLanes + position % kKvLanes) *
           scale(k_scale_, position);
  }
  [[nodiscard]] double v(std::int64_t position, std::int64_t d) {
    return read(v_, position * head_dim_ + d) * scale(v_scale_, position);
  }
  [[nodiscard]] float k_scale(std::int64_t position) const {
    return k_scale_[static_cast<std::size_t>(position)];
  }

 private:
  [[nodiscard]] std::size_t bytes() const {
    return static_cast<std::size_t>(kKvChunk * head_dim_ * element_bytes(dtype_));
  }
  [[nodiscard]] double read(const GuardedBytes& memory, std::int64_t i) const {
    if (dtype_ == DType::i8) return static_cast<double>(static_cast<std::int8_t>(memory.data()[i]));
    return reference::element({memory.data(), dtype_, 1, kKvChunk * head_dim_, 0}, 0, i);
  }
  static double scale(const std::vector<float>& scales, std::int64_t position) {
    return scales.empty() ? 1 : static_cast<double>(scales[static_cast<std::size_t>(position)]);
  }

  KvKernels kernels_;
  std::int64_t head_dim_;
  DType dtype_;
  GuardedBytes k_, v_;
  std::vector<float> k_scale_, v_scale_;
};

/// What attend() writes.
struct Attended {
  Attended(std::int64_t queries, std::int64_t head_dim)
      : out(static_cast<std::size_t>(queries * head_dim), 777.0f),
        max(static_cast<std::size_t>(queries), 777.0f),
        sum(max) {}
  bool operator==(const Attended&) const = default;
  std::vector<float> out, max, sum;
};

Attended attend(const KernelTable& table, KvType type, Chunk& chunk, const std::vector<float>& q,
                std::int64_t head_dim, const std::vector<std::int32_t>& visible, bool bulk = false) {
  const auto queries = static_cast<std::int64_t>(visible.size());
  Attended result(queries, head_dim);
  const GuardedBytes scratch(static_cast<std::size_t>(attend_scratch(head_dim)) * sizeof(float));
  AttendArgs args;
  args.q = q.data();
  args.q_stride = head_dim;
  args.queries = queries;
  args.head_dim = head_dim;
  args.chunk = chunk.view();
  args.visible = visible.data();
  args.out = result.out.data();
  args.out_stride = head_dim;
  args.max = result.max.data();
  args.sum = result.sum.data();
  args.scratch = scratch.floats();
  const KvKernels& kernels = table.kv[static_cast<std::size_t>(type)];
  (bulk ? kernels.attend_bulk : kernels.attend)(args);
  return result;
}

std::vector<float> make_queries(RandomFloats& random, std::int64_t queries, std::int64_t head_dim) {
  auto q = random.vector(queries * head_dim);
  for (float& value : q) value /= std::sqrt(static_cast<float>(head_dim));
  return q;
}

/// Stores random keys and values; some are so small or large that halves need a scale.
void fill(Chunk& chunk, RandomFloats& random, std::int64_t positions, std::int64_t head_dim) {
  for (std::int64_t p = 0; p < positions; ++p) {
    auto k = random.vector(head_dim), v = random.vector(head_dim);
    if (p % 5 == 1) std::ranges::transform(k, k.begin(), [](float x) { return x * 0x1p-30f; });
    if (p % 7 == 2) std::ranges::transform(v, v.begin(), [](float x) { return x * 0x1p20f; });
    chunk.store(p, k.data(), v.data());
  }
}

/// The chunk's first positions as they are stored, and one query, in double precision.
struct Expected {
  /// `unit`: half a unit in the last place of what is multiplied.
  Expected(Chunk& chunk, const float* q, std::int64_t positions, std::int64_t head_dim, double unit = 0)
      : out(static_cast<std::size_t>(head_dim)), tolerance(out) {
    std::vector<double> query(q, q + head_dim), k, v;
    double score_error = 0;
    for (std::int64_t p = 0; p < positions; ++p) {
      double magnitude = 0;
      for (std::int64_t d = 0; d < head_dim; ++d) {
        k.push_back(chunk.k(p, d)), v.push_back(chunk.v(p, d));
        magnitude += std::abs(query[static_cast<std::size_t>(d)] * k.back());
      }
      score_error = std::max(score_error, (static_cast<double>(head_dim + 3) * kUnit + 2 * unit) * magnitude);
    }
    reference::attend(query.data(), k.data(), v.data(), head_dim, positions, head_dim, out.data());
    // An error e in a score is a relative error e in its weight and in the sum of weights; then come the
    // exponential and the chains of the sum and of the mix, all relative to the weighted sum of magnitudes.
    const double chain = 2 * score_error + static_cast<double>(2 * positions + 16) * kUnit + 2 * unit;
    double total = 0;
    for (double& value : v) total += value = std::abs(value);
    // Weights below exp(-86.9) count as zeros.
    const double lowest = std::exp(-86.9) * total + 1e-35;
    reference::attend(query.data(), k.data(), v.data(), head_dim, positions, head_dim, tolerance.data());
    for (double& value : tolerance) value = value * chain + lowest;
  }
  std::vector<double> out, tolerance;
};

/// Checks what all queries got; `unit` as for Expected.
void expect_near_reference(const Attended& got, Chunk& chunk, const std::vector<float>& q,
                           std::int64_t head_dim, const std::vector<std::int32_t>& visible, double unit) {
  for (std::size_t i = 0; i < visible.size(); ++i) {
    if (visible[i] == 0) {
      EXPECT_EQ(got.sum[i], 0.0f);
      continue;
    }
    const std::size_t first = i * static_cast<std::size_t>(head_dim);
    const Expected expected(chunk, q.data() + first, visible[i], head_dim, unit);
    for (std::size_t d = 0; d < static_cast<std::size_t>(head_dim); ++d) {
      ASSERT_NEAR(static_cast<double>(got.out[first + d]) / static_cast<double>(got.sum[i]), expected.out[d],
                  expected.tolerance[d])
          << "head_dim " << head_dim << ", visible " << visible[i] << ", dimension " << d;
    }
  }
}

constexpr KvType kTypes[] = {KvType::f32, KvType::f16, KvType::bf16, KvType::q8};

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

/// In steps of many tokens numbers may be rounded to eight bits. Scores are small here, since an error in a
/// score is a relative one of its weight.
TEST_P(AttentionTest, BulkMatchesReferenceForAllHeadSizesAndCounts) {
  const double unit = table().probe.bf16 != nullptr ? 0x1p-8 : 0;
  RandomFloats random(11);
  for (const KvType type : kTypes) {
    for (const std::int64_t head_dim : {2, 6, 64, 66, 80, 128, 136}) {
      Chunk chunk(table(), type, head_dim);
      for (std::int64_t p = 0; p < kKvChunk - 3; ++p) {
        auto k = random.vector(head_dim);
        const auto v = random.vector(head_dim);
        for (float& value : k) value *= 0.05f;
        chunk.store(p, k.data(), v.data());
      }
      for (const std::vector<std::int32_t>& visible : std::vector<std::vector<std::int32_t>>{
               {1, 2}, {0, 17, 33, 33, 34, 65, 253}, {253, 253, 100, 1, 31}}) {
        const auto queries = static_cast<std::int64_t>(visible.size());
        const auto q = make_queries(random, queries, head_dim);
        const Attended got = attend(table(), type, chunk, q, head_dim, visible, true);
        expect_near_reference(got, chunk, q, head_dim, visible, unit);
      }
    }
  }
}

TEST_P(AttentionTest, QueriesGetTheSameBitsAloneAndTogetherWhateverLiesBeyond) {
  RandomFloats random(2);
  for (const KvType type : kTypes) {
    for (const std::int64_t head_dim : {6, 80, 128}) {
      Chunk chunk(table(), type, head_dim), longer(table(), type, head_dim);
      std::vector<std::int32_t> visible;
      for (std::int32_t i = 0; i < kAttendQueries; ++i) visible.push_back(i * 37 % 60);
      for (std::int64_t p = 0; p < kKvChunk; ++p) {
        const auto k = random.vector(head_dim), v = random.vector(head_dim);
        longer.store(p, k.data(), v.data());
        if (p < *std::ranges::max_element(visible)) chunk.store(p, k.data(), v.data());
      }
      const auto q = make_queries(random, kAttendQueries, head_dim);
      const Attended together = attend(table(), type, chunk, q, head_dim, visible);
      EXPECT_EQ(together, attend(table(), type, longer, q, head_dim, visible));
      for (std::int64_t i = 0; i < kAttendQueries; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const std::vector<float> alone_q(q.begin() + i * head_dim, q.begin() + (i + 1) * head_dim);
        const Attended alone = attend(table(), type, chunk, alone_q, head_dim, {visible[at]});
        ASSERT_TRUE(same_bits(alone.out.data(), together.out.data() + i * head_dim, head_dim)) << i;
        ASSERT_TRUE(same_bits(alone.max.data(), &together.max[at], 1));
        ASSERT_TRUE(same_bits(alone.sum.data(), &together.sum[at], 1));
      }
    }
  }
}

TEST_P(AttentionTest, NothingVisibleGivesNothing) {
  for (const KvType type : kTypes) {
    Chunk chunk(table(), type, 10);
    const Attended got = attend(table(), type, chunk, std::vector<float>(10, 1.0f), 10, {0});
    EXPECT_EQ(got.out, std::vector<float>(10, 0.0f));
    EXPECT_EQ(got.max[0], -kInfinity);
    EXPECT_EQ(got.sum[0], 0.0f);
  }
}

TEST_P(AttentionTest, NonFiniteKeysValuesAndQueriesShow) {
  constexpr std::int64_t kDim = 20;
  for (const KvType type : kTypes) {
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      for (int where = 0; where < 3; ++where) {
        RandomFloats random(3);
        Chunk chunk(table(), type, kDim);
        fill(chunk, random, 40, kDim);
        auto q = std::vector<float>(kDim, 0.1f), k = std::vector<float>(kDim, 0.2f), v = k;
        (where == 0 ? q : where == 1 ? k : v)[kDim - 1] = bad;
        chunk.store(17, k.data(), v.data());
        const Attended got = attend(table(), type, chunk, q, kDim, {40});
        const bool finite =
            std::ranges::all_of(got.out, [&](float x) { return std::isfinite(x / got.sum[0]); });
        // A key that scores -inf is as good as unseen; but bytes do not tell infinities from NaN.
        EXPECT_EQ(finite, where == 1 && bad == -kInfinity && type != KvType::q8) << bad << " " << where;
      }
    }
  }
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
