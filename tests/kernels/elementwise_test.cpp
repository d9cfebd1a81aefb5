#include "kernels/kernel_test.h"
#include "qgen/kernels/reference.h"

namespace qgen::test {
namespace {

using ElementwiseTest = KernelTest;
QGEN_FOR_ALL_TABLES(ElementwiseTest);

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

std::vector<double> widened(const std::vector<float>& values) {
  return {values.begin(), values.end()};
}

/// Lengths from nothing to two vectors and one more, and two of a model.
std::vector<std::int64_t> lengths(std::int64_t lanes) {
  std::vector<std::int64_t> all;
  for (std::int64_t n = 0; n <= 2 * lanes + 1; ++n) all.push_back(n);
  all.push_back(128);
  all.push_back(1030);
  return all;
}

/// Values that end at memory which must not be touched.
class GuardedFloats {
 public:
  explicit GuardedFloats(const std::vector<float>& values) : n_(values.size()), memory_(n_ * sizeof(float)) {
    std::ranges::copy(values, memory_.floats());
  }
  [[nodiscard]] float* data() const { return memory_.floats(); }
  float& operator[](std::int64_t i) const { return memory_.floats()[i]; }

 private:
  std::size_t n_;
  GuardedBytes memory_;
};

TEST_P(ElementwiseTest, RmsNormMatchesReference) {
  RandomFloats random(1);
  for (const std::int64_t n : lengths(lanes())) {
    const auto x = random.vector(n), weight = random.vector(n);
    std::vector<double> expected(x.size());
    reference::rms_norm(widened(x).data(),
                        {reinterpret_cast<const std::byte*>(weight.data()), DType::f32, 1, n, n * 4}, 1e-6, n,
                        expected.data());
    const GuardedFloats in(x), scales(weight), out(std::vector<float>(x.size(), 777.0f));
    table().rms_norm(in.data(), scales.data(), 1e-6f, n, out.data());
    // The root halves the error of the sum of squares; then come the root itself and two products.
    const double chain = (static_cast<double>(n) / static_cast<double>(lanes()) + 8) / 2 + 3;
    for (std::int64_t i = 0; i < n; ++i) {
      const double value = expected[static_cast<std::size_t>(i)];
      ASSERT_NEAR(static_cast<double>(out[i]), value, chain * kUnit * std::abs(value)) << i << " of " << n;
    }
    table().rms_norm(in.data(), scales.data(), 1e-6f, n, in.data());
    EXPECT_TRUE(same_bits(in.data(), out.data(), n)) << "in place, length " << n;
  }
}

TEST_P(ElementwiseTest, RmsNormDividesByTheRootOfEpsilonWhereAllIsZero) {
  const std::vector<float> x(20, 0.0f), weight(20, 1.0f);
  std::vector<float> y(20, 777.0f);
  table().rms_norm(x.data(), weight.data(), 1e-6f, 20, y.data());
  EXPECT_EQ(y, x);
}

TEST_P(ElementwiseTest, RmsNormOfNumbersWhoseSquaresOverflowIsNaN) {
  std::vector<float> x(40, 1.0f), weight(40, 1.0f), y(40);
  x[7] = 1e30f;
  table().rms_norm(x.data(), weight.data(), 1e-6f, 40, y.data());
  for (const float value : y) EXPECT_TRUE(std::isnan(value));
}

TEST_P(ElementwiseTest, RopeMatchesReferenceInBothPairings) {
  RandomFloats random(2);
  for (const bool adjacent : {false, true}) {
    for (const std::int64_t half : lengths(lanes())) {
      const auto x = random.vector(2 * half);
      std::vector<float> cos(static_cast<std::size_t>(half)), sin(cos.size());
      for (std::size_t i = 0; i < cos.size(); ++i) {
        const double angle = 3.7 * static_cast<double>(i);
        cos[i] = static_cast<float>(std::cos(angle)), sin[i] = static_cast<float>(std::sin(angle));
      }
      std::vector<double> expected = widened(x);
      reference::rope(expected.data(), cos.data(), sin.data(), half, adjacent);
      const GuardedFloats rotated(x), c(cos), s(sin);
      table().rope(rotated.data(), c.data(), s.data(), half, adjacent);
      for (std::int64_t i = 0; i < 2 * half; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const std::size_t pair = static_cast<std::size_t>(adjacent ? i ^ 1 : (i + half) % (2 * half));
        const double size = std::abs(static_cast<double>(x[at])) + std::abs(static_cast<double>(x[pair]));
        ASSERT_NEAR(static_cast<double>(rotated[i]), expected[at], 3 * kUnit * size) << i << " of " << half;
      }
    }
  }
}

TEST_P(ElementwiseTest, SiluMulMatchesReferenceOnAllLengths) {
  RandomFloats random(3);
  for (const std::int64_t n : lengths(lanes())) {
    const auto gate = random.vector(n), up = random.vector(n);
    std::vector<double> expected(gate.size());
    reference::silu_mul(widened(gate).data(), widened(up).data(), n, expected.data());
    const GuardedFloats g(gate), u(up), out(gate);
    table().silu_mul(g.data(), u.data(), n, out.data());
    for (std::int64_t i = 0; i < n; ++i) {
      const double value = expected[static_cast<std::size_t>(i)];
      ASSERT_NEAR(static_cast<double>(out[i]), value, 8 * kUnit * std::abs(value) + 1e-35)
          << i << " of " << n;
    }
    table().silu_mul(g.data(), u.data(), n, g.data());
    EXPECT_TRUE(same_bits(g.data(), out.data(), n)) << "in place, length " << n;
  }
}

// silu(x) / x = 1 / (1 + exp(-x)) is exp(x) for very negative x: this measures the exponential itself.
TEST_P(ElementwiseTest, SiluIsAccurateOverTheWholeRange) {
  constexpr std::int64_t kPoints = 400000;
  std::vector<float> gate(kPoints), one(kPoints, 1.0f), out(kPoints);
  for (std::int64_t i = 0; i < kPoints; ++i) {
    gate[static_cast<std::size_t>(i)] =
        -100.0f + 200.0f * static_cast<float>(i) / static_cast<float>(kPoints);
  }
  table().silu_mul(gate.data(), one.data(), kPoints, out.data());
  double worst = 0;
  for (std::size_t i = 0; i < gate.size(); ++i) {
    const auto x = static_cast<double>(gate[i]);
    const double expected = x / (1 + std::exp(-x));
    // Beyond the range of the exponential the result may be zero.
    const double error = std::max(0.0, std::abs(static_cast<double>(out[i]) - expected) - 1e-35);
    worst = std::max(worst, error / std::max(std::abs(expected), 1e-30));
  }
  EXPECT_LT(worst, 6 * kUnit);
}

TEST_P(ElementwiseTest, SiluKeepsItsLimitsAndNaN) {
  const std::vector<float> gate{-1e5f, -1e30f, 1e5f, 1e30f, kInfinity, kNan, 0.0f, -0.0f};
  const std::vector<float> one(gate.size(), 1.0f);
  std::vector<float> out(gate.size());
  table().silu_mul(gate.data(), one.data(), static_cast<std::int64_t>(gate.size()), out.data());
  EXPECT_EQ(out[0], 0.0f);
  EXPECT_EQ(out[1], 0.0f);
  EXPECT_EQ(out[2], 1e5f);
  EXPECT_EQ(out[3], 1e30f);
  EXPECT_EQ(out[4], kInfinity);
  EXPECT_TRUE(std::isnan(out[5]));
  EXPECT_EQ(out[6], 0.0f);
  EXPECT_TRUE(std::signbit(out[7]));
}

TEST_P(ElementwiseTest, AddMulAndScaleAreExactlyRounded) {
  RandomFloats random(4);
  for (const std::int64_t n : lengths(lanes())) {
    const auto a = random.vector(n), b = random.vector(n);
    const GuardedFloats x(a), y(b);
    table().add(x.data(), n, y.data());
    for (std::int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(y[i], a[static_cast<std::size_t>(i)] + b[static_cast<std::size_t>(i)]);
    }
    const GuardedFloats product(b);
    table().mul(x.data(), n, product.data());
    for (std::int64_t i = 0; i < n; ++i) {
      ASSERT_EQ(product[i], a[static_cast<std::size_t>(i)] * b[static_cast<std::size_t>(i)]);
    }
    table().scale(x.data(), 0.3f, n, y.data());
    for (std::int64_t i = 0; i < n; ++i) ASSERT_EQ(y[i], a[static_cast<std::size_t>(i)] * 0.3f);
    table().scale(x.data(), 0.3f, n, x.data());
    EXPECT_TRUE(same_bits(x.data(), y.data(), n));
  }
}

/// The definition, in a plain loop.
BestLogit plain_best(const std::vector<float>& values) {
  BestLogit best;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    if (!(values[i] < kInfinity) && best.not_finite < 0) best.not_finite = at;
    if (values[i] > -kInfinity && (best.index < 0 || values[i] > best.value))
      best.index = at, best.value = values[i];
  }
  return best;
}

void expect_best(const KernelTable& table, const std::vector<float>& values) {
  const GuardedFloats guarded(values);
  const BestLogit best = table.best(guarded.data(), static_cast<std::int64_t>(values.size()));
  const BestLogit expected = plain_best(values);
  EXPECT_EQ(best.index, expected.index);
  EXPECT_EQ(best.value, expected.value);
  EXPECT_EQ(best.not_finite, expected.not_finite);
}

TEST_P(ElementwiseTest, BestFindsTheLowestIndexOfTheLargestValue) {
  RandomFloats random(5);
  std::vector<std::int64_t> all = lengths(lanes());
  all.insert(all.end(), {32 * lanes() - 1, 32 * lanes(), 64 * lanes() + 3, 5000});
  for (const std::int64_t n : all) {
    auto values = random.vector(n);
    for (float& value : values) value -= 1000.0f;
    expect_best(table(), values);
    if (n < 3) continue;
    // Ties, at both ends and in the middle.
    for (const std::size_t first : {std::size_t{0}, values.size() / 2, values.size() - 2}) {
      auto tied = values;
      tied[first] = tied.back() = 5.0f;
      expect_best(table(), tied);
    }
  }
}

TEST_P(ElementwiseTest, BestReportsWhatIsNotFinite) {
  RandomFloats random(6);
  for (const std::int64_t n : {1, 20, 3000}) {
    for (const float bad : {kNan, kInfinity, -kInfinity}) {
      for (const double place : {0.0, 0.4, 0.99}) {
        auto values = random.vector(n);
        const auto at = static_cast<std::size_t>(place * static_cast<double>(n));
        values[at] = bad;
        values.back() = bad;
        expect_best(table(), values);
      }
    }
    expect_best(table(), std::vector<float>(static_cast<std::size_t>(n), -kInfinity));
    expect_best(table(), std::vector<float>(static_cast<std::size_t>(n), kNan));
  }
  expect_best(table(), {-0.0f, 0.0f});
}

}  // namespace
}  // namespace qgen::test
