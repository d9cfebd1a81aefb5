#pragma once

#include "kernels/kernel_test.h"
#include "qgen/kernels/reference.h"

namespace qgen::test {

inline constexpr float kInfinity = std::numeric_limits<float>::infinity();
inline constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
inline constexpr DType kKvDTypes[] = {DType::f32, DType::f16, DType::bf16, DType::i8};  // by KvType

inline bool has_scales(KvType type) {
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

inline Attended attend(const KernelTable& table, KvType type, Chunk& chunk, const std::vector<float>& q,
                       std::int64_t head_dim, const std::vector<std::int32_t>& visible, bool bulk = false) {
  const auto queries = static_cast<std::int64_t>(visible.size());
  Attended result(queries, head_dim);
  const GuardedBytes scratch(static_cast<std::size_t>(attend_scratch(head_dim)) * sizeof(float));
  std::fill_n(scratch.floats(), attend_scratch(head_dim), kNan);  // as if used before
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

inline std::vector<float> make_queries(RandomFloats& random, std::int64_t queries, std::int64_t head_dim) {
  auto q = random.vector(queries * head_dim);
  for (float& value : q) value /= std::sqrt(static_cast<float>(head_dim));
  return q;
}

/// Stores random keys and values; some are so small or large that halves need a scale.
inline void fill(Chunk& chunk, RandomFloats& random, std::int64_t positions, std::int64_t head_dim) {
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
inline void expect_near_reference(const Attended& got, Chunk& chunk, const std::vector<float>& q,
                                  std::int64_t head_dim, const std::vector<std::int32_t>& visible,
                                  double unit) {
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

inline constexpr KvType kTypes[] = {KvType::f32, KvType::f16, KvType::bf16, KvType::q8};

/// Half a unit in the last place of bf16.
inline constexpr double kBf16Unit = 0x1p-8;

/// attend_bulk, whose numbers are rounded by `unit`. Scores are small here, since an error in a score is a
/// relative one of its weight.
inline void expect_bulk_near_reference(const KernelTable& table, double unit) {
  RandomFloats random(11);
  for (const KvType type : kTypes) {
    for (const std::int64_t head_dim : {2, 6, 64, 66, 80, 128, 136}) {
      Chunk chunk(table, type, head_dim);
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
        const Attended got = attend(table, type, chunk, q, head_dim, visible, true);
        expect_near_reference(got, chunk, q, head_dim, visible, unit);
      }
    }
  }
}

/// A query's arithmetic is its own, and what lies beyond what it sees may be anything.
inline void expect_same_bits_alone_and_together(const KernelTable& table, bool bulk) {
  RandomFloats random(2);
  for (const KvType type : kTypes) {
    for (const std::int64_t head_dim : {6, 80, 128}) {
      Chunk chunk(table, type, head_dim), longer(table, type, head_dim);
      std::vector<std::int32_t> visible;
      for (std::int32_t i = 0; i < kAttendQueries; ++i) visible.push_back(i * 37 % 60);
      for (std::int64_t p = 0; p < kKvChunk; ++p) {
        const auto k = random.vector(head_dim), v = random.vector(head_dim);
        longer.store(p, k.data(), v.data());
        if (p < *std::ranges::max_element(visible)) chunk.store(p, k.data(), v.data());
      }
      const auto q = make_queries(random, kAttendQueries, head_dim);
      const Attended together = attend(table, type, chunk, q, head_dim, visible, bulk);
      EXPECT_EQ(together, attend(table, type, longer, q, head_dim, visible, bulk));
      for (std::int64_t i = 0; i < kAttendQueries; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const std::vector<float> alone_q(q.begin() + i * head_dim, q.begin() + (i + 1) * head_dim);
        const Attended alone = attend(table, type, chunk, alone_q, head_dim, {visible[at]}, bulk);
        ASSERT_TRUE(same_bits(alone.out.data(), together.out.data() + i * head_dim, head_dim)) << i;
        ASSERT_TRUE(same_bits(alone.max.data(), &together.max[at], 1));
        ASSERT_TRUE(same_bits(alone.sum.data(), &together.sum[at], 1));
      }
    }
  }
}

inline void expect_nothing_from_nothing_visible(const KernelTable& table, bool bulk) {
  for (const KvType type : kTypes) {
    Chunk chunk(table, type, 10);
    const Attended got = attend(table, type, chunk, std::vector<float>(10, 1.0f), 10, {0}, bulk);
    EXPECT_EQ(got.out, std::vector<float>(10, 0.0f));
    EXPECT_EQ(got.max[0], -kInfinity);
    EXPECT_EQ(got.sum[0], 0.0f);
  }
}

/// Infinities and NaN in queries, keys and values.
inline void expect_non_finite_to_show(const KernelTable& table, bool bulk) {
  constexpr std::int64_t kDim = 20;
  for (const KvType type : kTypes) {
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      for (int where = 0; where < 3; ++where) {
        RandomFloats random(3);
        Chunk chunk(table, type, kDim);
        fill(chunk, random, 40, kDim);
        auto q = std::vector<float>(kDim, 0.1f), k = std::vector<float>(kDim, 0.2f), v = k;
        (where == 0 ? q : where == 1 ? k : v)[kDim - 1] = bad;
        chunk.store(17, k.data(), v.data());
        const Attended got = attend(table, type, chunk, q, kDim, {40}, bulk);
        const bool finite =
            std::ranges::all_of(got.out, [&](float x) { return std::isfinite(x / got.sum[0]); });
        // A key that scores -inf is as good as unseen; but bytes do not tell infinities from NaN.
        EXPECT_EQ(finite, where == 1 && bad == -kInfinity && type != KvType::q8) << bad << " " << where;
      }
    }
  }
}

}  // namespace qgen::test
