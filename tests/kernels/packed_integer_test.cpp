#include "kernels/packed_integers.h"

namespace qgen::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class PackedIntegersTest : public KernelTest {
 protected:
  [[nodiscard]] const PackedKernels& kernels(PackedType type) const {
    return table().packed[static_cast<std::size_t>(type)];
  }
};
QGEN_FOR_ALL_TABLES(PackedIntegersTest);

/// A token of X in double precision.
std::vector<double> exact_input(const Matrix& x, std::int64_t t) {
  return {x.row(t), x.row(t) + x.cols};
}

/// A token of X rounded to 16 bits by groups.
std::vector<double> rounded_input(const Matrix& x, std::int64_t t) {
  std::vector<double> rounded = exact_input(x, t);
  for (std::int64_t g = 0; g < x.cols; g += kGroup) {
    const std::int64_t end = std::min(g + kGroup, x.cols);
    float largest = 0;
    for (std::int64_t c = g; c < end; ++c) largest = std::max(largest, std::abs(x.row(t)[c]));
    const double scale = static_cast<double>(largest / 32639.0f);
    const float inverse = 32639.0f / largest;
    for (std::int64_t c = g; c < end && largest > 0; ++c) {
      rounded[static_cast<std::size_t>(c)] =
          scale * static_cast<double>(std::nearbyint(x.row(t)[c] * inverse));
    }
  }
  return rounded;
}

/// `relative`: the tolerance, relative to the sum of the magnitudes of the terms.
void expect_near(const std::vector<float>& y, const Matrix& weights_times_127, const Matrix& x,
                 std::vector<double> (*input_of)(const Matrix&, std::int64_t), double relative) {
  for (std::int64_t t = 0; t < x.rows; ++t) {
    const auto input = input_of(x, t);
    for (std::int64_t r = 0; r < weights_times_127.rows; ++r) {
      double expected = 0, magnitude = 0;
      for (std::int64_t c = 0; c < x.cols; ++c) {
        const double term =
            static_cast<double>(weights_times_127.row(r)[c]) / 127 * input[static_cast<std::size_t>(c)];
        expected += term;
        magnitude += std::abs(term);
      }
      ASSERT_NEAR(static_cast<double>(y[static_cast<std::size_t>(t * weights_times_127.rows + r)]), expected,
                  relative * magnitude)
          << "row " << r << ", token " << t << " of " << x.rows << ", cols " << x.cols;
    }
  }
}

void expect_integer_products(const std::vector<float>& y, const Matrix& weights_times_127, const Matrix& x) {
  expect_near(y, weights_times_127, x, rounded_input, 1e-5);
}

/// Tables with arithmetic in bf16 use it for many tokens: weights and inputs are rounded to eight bits.
void expect_bulk_products(const KernelTable& table, const std::vector<float>& y,
                          const Matrix& weights_times_127, const Matrix& x) {
  if (table.probe.bf16 == nullptr) return expect_integer_products(y, weights_times_127, x);
  expect_near(y, weights_times_127, x, exact_input, 1.1 * 0x1p-7);
}

TEST_P(PackedIntegersTest, MatchReferenceOnAllLengths) {
  for (const PackedType type : kIntegerTypes) {
    const PackedKernels& packed = kernels(type);
    for (std::int64_t cols = 0; cols <= 2 * 64 + 1; ++cols) {
      const std::int64_t rows = 1 + cols % (2 * packed.panel_rows + 1);
      const Matrix weights(rows, cols, static_cast<std::uint32_t>(cols));
      const Panels w(packed, weights);
      const Matrix rounded = rounded_times_127(w);
      const Matrix x(1 + cols % kFewTokens, cols, 1), more(1 + cols * 5 % 43, cols, 2);
      SCOPED_TRACE(integer_type_name(type));
      expect_integer_products(multiply(packed.few, w, x), rounded, x);
      expect_integer_products(multiply(packed.many, w, more), rounded, more);
      expect_bulk_products(table(), multiply(packed.bulk, w, more), rounded, more);
    }
  }
}

TEST_P(PackedIntegersTest, MatchReferenceOnLengthsOfModels) {
  for (const PackedType type : kIntegerTypes) {
    const PackedKernels& packed = kernels(type);
    for (const std::int64_t cols : {896, 1024, 1056, 3072}) {
      const Matrix weights(packed.panel_rows + 1, cols, 6);
      const Panels w(packed, weights);
      const Matrix rounded = rounded_times_127(w);
      const Matrix x(3, cols, 7), more(50, cols, 8);
      expect_integer_products(multiply(packed.few, w, x), rounded, x);
      expect_integer_products(multiply(packed.many, w, more), rounded, more);
      expect_bulk_products(table(), multiply(packed.bulk, w, more), rounded, more);
    }
  }
}

/// Weights and inputs that are integers with scales of 1, at their limits.
TEST_P(PackedIntegersTest, MultiplyTheLargestIntegers) {
  constexpr std::int64_t kCols = 1024;
  for (const PackedType type : kIntegerTypes) {
    const PackedKernels& packed = kernels(type);
    const int low = type == PackedType::q8 ? -127 : -8, high = type == PackedType::q8 ? 127 : 7;
    std::mt19937 random(1);
    const auto between = [&](int from, int to) {
      return static_cast<float>(from + static_cast<int>(random() % static_cast<unsigned>(to - from + 1)));
    };
    Matrix weights(2 * packed.panel_rows, kCols), x(20, kCols);
    weights.fill([&] { return random() % 4 == 0 ? static_cast<float>(low) : between(low, high); });
    x.fill([&] { return random() % 4 == 0 ? 32639.0f : between(-32639, 32639); });
    // The largest sums: everything at its limit, of either sign.
    std::fill_n(weights.row(0), kCols, static_cast<float>(low));
    std::fill_n(weights.row(1), kCols, static_cast<float>(high));
    weights.row(1)[0] = static_cast<float>(low);
    std::fill_n(x.row(0), kCols, 32639.0f);
    std::fill_n(x.row(1), kCols, -32639.0f);
    // Lower bytes at their limits as well.
    std::fill_n(x.row(2), kCols, 126.0f * 256 - 128);
    std::fill_n(x.row(3), kCols, -126.0f * 256 - 128);
    for (std::int64_t c = 0; c < kCols; c += kGroup) {
      for (std::int64_t r = 2; r < weights.rows; ++r)
        weights.row(r)[c + r % kGroup] = static_cast<float>(low);
      weights.row(1)[c] = static_cast<float>(low);
      for (std::int64_t t = 2; t < x.rows; ++t) x.row(t)[c + t % kGroup] = 32639.0f;
    }
    const Panels w(packed, weights);
    const auto y = multiply(packed.many, w, x);
    const auto few = multiply(packed.few, w, {0, w.rows}, x, 0, kFewTokens);
    for (std::int64_t t = 0; t < x.rows; ++t) {
      for (std::int64_t r = 0; r < w.rows; ++r) {
        double expected = 0, magnitude = 0;
        for (std::int64_t c = 0; c < kCols; ++c) {
          const double term = static_cast<double>(weights.row(r)[c]) * static_cast<double>(x.row(t)[c]);
          expected += term;
          magnitude += std::abs(term);
        }
        // Integers are exact; groups are added up in floats.
        const double tolerance = kUnit * static_cast<double>(2 * kCols / kGroup + 2) * magnitude;
        const auto at = static_cast<std::size_t>(t * w.rows + r);
        ASSERT_NEAR(static_cast<double>(y[at]), expected, tolerance)
            << integer_type_name(type) << " " << t << " " << r;
        if (t < kFewTokens) {
          ASSERT_EQ(few[at], y[at]) << t << " " << r;
        }
      }
    }
  }
}

TEST_P(PackedIntegersTest, GiveTheSameBitsHoweverRowsAndTokensAreCut) {
  for (const PackedType type : kIntegerTypes) {
    const PackedKernels& packed = kernels(type);
    for (const std::int64_t cols : {7, 100, 1024, 2113}) {
      const Panels w(packed, Matrix(9 * packed.panel_rows + 3, cols, 3));
      const Matrix x(53, cols, 4);
      const auto whole_exact = multiply(packed.many, w, x), whole_bulk = multiply(packed.bulk, w, x);
      const auto expect_part = [&](const MatmulKernel& kernel, std::int64_t first, std::int64_t tokens) {
        const auto& whole = &kernel == &packed.bulk ? whole_bulk : whole_exact;
        const std::int64_t begin = (first * 5 + tokens) % 10 * packed.panel_rows;
        const std::int64_t end = std::min(w.rows, begin + 1 + tokens * 7 % (w.rows - begin));
        const auto part = multiply(kernel, w, {begin, end}, x, first, tokens);
        for (std::int64_t t = 0; t < tokens; ++t) {
          ASSERT_TRUE(same_bits(whole.data() + (first + t) * w.rows + begin, part.data() + t * (end - begin),
                                end - begin))
              << tokens << " tokens from " << first << ", rows " << begin << " to " << end;
        }
      };
      for (std::int64_t tokens = 1; tokens <= kFewTokens; ++tokens) {
        for (const std::int64_t first : {std::int64_t{0}, x.rows - tokens})
          expect_part(packed.few, first, tokens);
      }
      for (const std::int64_t tokens : {1, 2, 5, 12, 15, 16, 17, 31, 40, 53}) {
        for (const std::int64_t first : {std::int64_t{0}, x.rows - tokens}) {
          expect_part(packed.many, first, tokens);
          expect_part(packed.bulk, first, tokens);
        }
      }
    }
  }
}

TEST_P(PackedIntegersTest, PrepareTokensInAnyRangesOfBlocks) {
  constexpr std::int64_t kTokens = 50, kCols = 77;
  const Matrix x(kTokens, kCols, 5);
  for (const PackedType type : kIntegerTypes) {
    for (const MatmulKernel* kernel : {&kernels(type).few, &kernels(type).many, &kernels(type).bulk}) {
      std::vector<std::byte> once(kernel->input_bytes(kTokens, kCols)), parts(once.size());
      kernel->prepare(x.row(0), kCols, 0, kTokens, kCols, once.data());
      for (std::int64_t t = 0; t < kTokens; t += 3 * kernel->token_block) {
        kernel->prepare(x.row(0), kCols, t, std::min(kTokens, t + 3 * kernel->token_block), kCols,
                        parts.data());
      }
      EXPECT_EQ(once, parts);
    }
  }
}

TEST_P(PackedIntegersTest, WriteOnlyTheirRowsAndTokens) {
  constexpr std::int64_t kRows = 37, kCols = 20, kTokens = 14;
  for (const PackedType type : kIntegerTypes) {
    const Panels w(kernels(type), Matrix(kRows, kCols, 6));
    const Matrix x(kTokens, kCols, 7);
    for (const MatmulKernel* kernel : {&kernels(type).few, &kernels(type).many, &kernels(type).bulk}) {
      std::vector<std::byte> input(kernel->input_bytes(kTokens, kCols)),
          scratch(kernel->scratch_bytes(kCols));
      kernel->prepare(x.row(0), kCols, 0, kTokens, kCols, input.data());
      expect_writes_only(kTokens, kRows, [&](float* y, std::int64_t stride) {
        kernel->multiply({w.panel(0), kRows, kCols, input.data(), kTokens, y, stride, scratch.data()});
      });
    }
  }
}

TEST_P(PackedIntegersTest, InputsThatAreNotFiniteShowInTheirTokensAlone) {
  constexpr std::int64_t kTokens = 5;
  for (const PackedType type : kIntegerTypes) {
    for (const std::int64_t cols : {45, 64, 200}) {
      const Panels w(kernels(type), Matrix(19, cols, 8));
      for (const float bad : {kNan, kInfinity, -kInfinity}) {
        for (const std::int64_t place : {std::int64_t{0}, std::int64_t{13}, std::int64_t{31}, cols - 1}) {
          const Matrix x(kTokens, cols, 9);
          x.row(2)[place] = bad;
          for (const MatmulKernel* kernel : {&kernels(type).few, &kernels(type).many, &kernels(type).bulk}) {
            const auto y = multiply(*kernel, w, x);
            for (std::int64_t t = 0; t < kTokens; ++t) {
              for (std::int64_t r = 0; r < w.rows; ++r) {
                const float value = y[static_cast<std::size_t>(t * w.rows + r)];
                ASSERT_EQ(std::isfinite(value), t != 2) << r << " " << t << " " << bad;
              }
            }
          }
        }
      }
    }
  }
}

TEST_P(PackedIntegersTest, TakeZeroTinyAndHugeInputs) {
  for (const PackedType type : kIntegerTypes) {
    Matrix weights(1, 64);
    weights.fill([] { return 0.5f; });
    const Panels w(kernels(type), weights);
    for (const float size : {0.0f, 1e-45f, 1e-38f, 1e-20f, 1.0f, 1e30f, 3e38f / 64}) {
      Matrix x(1, 64);
      x.fill([&] { return size; });
      for (const MatmulKernel* kernel : {&kernels(type).few, &kernels(type).many}) {
        const double y = static_cast<double>(multiply(*kernel, w, x)[0]);
        const double expected = size < 0x1p-100f ? 0 : 32 * static_cast<double>(size);
        EXPECT_NEAR(y, expected, 1e-3 * expected) << size;
      }
    }
  }
}

}  // namespace
}  // namespace qgen::test
