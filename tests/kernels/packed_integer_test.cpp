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

/// A token of X rounded by groups to integers up to `limit`.
std::vector<double> rounded_to(const Matrix& x, std::int64_t t, float limit) {
  std::vector<double> rounded = exact_input(x, t);
  for (std::int64_t g = 0; g < x.cols; g += kGroup) {
    const std::int64_t end = std::min(g + kGroup, x.cols);
    float largest = 0;
    for (std::int64_t c = g; c < end; ++c) largest = std::max(largest, std::abs(x.row(t)[c]));
    const double scale = static_cast<double>(largest / limit);
    const float inverse = limit / largest;
    for (std::int64_t c = g; c < end && largest > 0; ++c) {
      rounded[static_cast<std::size_t>(c)] =
          scale * static_cast<double>(std::nearbyint(x.row(t)[c] * inverse));
    }
  }
  return rounded;
}

std::vector<double> rounded_to_15_bits(const Matrix& x, std::int64_t t) {
  return rounded_to(x, t, 16319);
}

std::vector<double> rounded_to_8_bits(const Matrix& x, std::int64_t t) {
  return rounded_to(x, t, 127);
}

/// The tolerance: `of_values` of the sum of the terms' magnitudes, and what adding up in floats may lose of
/// products and minima, which are added separately.
void expect_near(const std::vector<float>& y, const IntegerWeights& w, const Matrix& x,
                 std::vector<double> (*input_of)(const Matrix&, std::int64_t), double of_values) {
  const Matrix given = w.input_of(x);
  for (std::int64_t t = 0; t < x.rows; ++t) {
    const auto input = input_of(given, t);
    for (std::int64_t r = 0; r < w.values.rows; ++r) {
      double expected = 0, tolerance = 0;
      for (std::int64_t c = 0; c < given.cols; ++c) {
        const double value = input[static_cast<std::size_t>(c)];
        const double term = static_cast<double>(w.values.row(r)[c]) * value;
        expected += term;
        tolerance +=
            of_values * std::abs(term) + 1e-5 * static_cast<double>(w.magnitudes.row(r)[c]) * std::abs(value);
      }
      ASSERT_NEAR(static_cast<double>(y[static_cast<std::size_t>(t * w.values.rows + r)]), expected,
                  tolerance)
          << "row " << r << ", token " << t << " of " << x.rows << ", cols " << x.cols;
    }
  }
}

void expect_integer_products(const std::vector<float>& y, const IntegerWeights& w, const Matrix& x) {
  expect_near(y, w, x, rounded_to_15_bits, 0);
}

/// Weights of four bits and rotated ones.
bool has_byte_inputs(PackedType type) {
  return type == PackedType::q4 || type == PackedType::q4_1 || type == PackedType::q4_k ||
         type == PackedType::q8_rotated;
}

/// For very many tokens inputs are rounded to 8 bits where weights have 4 or are rotated. Else avx2 computes
/// in floats, and tables with arithmetic in bf16 use it, amx, whose bf16 is as fast as bytes, for all
/// weights: inputs and the values of weights have eight bits then.
void expect_bulk_products(const KernelTable& table, PackedType type, const std::vector<float>& y,
                          const IntegerWeights& w, const Matrix& x) {
  if (has_byte_inputs(type) && table.name != "amx") return expect_near(y, w, x, rounded_to_8_bits, 0);
  if (table.name == "avx2") return expect_near(y, w, x, exact_input, 0);
  if (table.probe.bf16 == nullptr) return expect_integer_products(y, w, x);
  expect_near(y, w, x, exact_input, 1.1 * 0x1p-7);
}

TEST_P(PackedIntegersTest, MatchReferenceOnAllLengths) {
  for (const IntegerSource& source : kIntegerSources) {
    SCOPED_TRACE(source.name);
    const PackedKernels& packed = kernels(source.type);
    for (std::int64_t i = 0; i <= 2 * 64 + 1; ++i) {
      const std::int64_t cols = source.whole(source.whole(1) > kGroup ? i % 4 * 256 : i);
      const std::int64_t rows = 1 + i % (2 * packed.panel_rows + 1);
      const IntegerWeights w(table(), source, rows, cols, static_cast<std::uint32_t>(i));
      const Matrix x(1 + i % kFewTokens, cols, 1), more(1 + i * 5 % 43, cols, 2);
      expect_integer_products(multiply(packed.few, w, x), w, x);
      expect_integer_products(multiply(packed.many, w, more), w, more);
      expect_bulk_products(table(), source.type, multiply(packed.bulk, w, more), w, more);
    }
  }
}

TEST_P(PackedIntegersTest, MatchReferenceOnLengthsOfModels) {
  for (const IntegerSource& source : kIntegerSources) {
    SCOPED_TRACE(source.name);
    const PackedKernels& packed = kernels(source.type);
    for (const std::int64_t cols : {896, 1024, 1056, 3072}) {
      const IntegerWeights w(table(), source, packed.panel_rows + 1, source.whole(cols), 6);
      const Matrix x(3, w.panels.cols, 7), more(50, w.panels.cols, 8);
      expect_integer_products(multiply(packed.few, w, x), w, x);
      expect_integer_products(multiply(packed.many, w, more), w, more);
      expect_bulk_products(table(), source.type, multiply(packed.bulk, w, more), w, more);
    }
  }
}

/// Inputs that are integers with scales of 1, at their limits.
Matrix largest_inputs(std::int64_t cols) {
  std::mt19937 random(1);
  Matrix x(20, cols);
  x.fill([&] {
    return random() % 4 == 0 ? 16319.0f : static_cast<float>(static_cast<int>(random() % 32639) - 16319);
  });
  for (std::int64_t t = 0; t < x.rows; ++t) {
    for (std::int64_t c = 0; c < cols; c += kGroup) x.row(t)[c + t % kGroup] = 16319.0f;
  }
  // The largest sums: everything at its limit, of either sign; then lower bytes at their limits as well.
  std::fill_n(x.row(0), cols, 16319.0f);
  std::fill_n(x.row(1), cols, -16319.0f);
  for (std::int64_t c = 0; c < cols; ++c) {
    if (c % kGroup == 2 || c % kGroup == 3) continue;  // where those tokens have their largest
    x.row(2)[c] = 126.0f * 128 + 64;
    x.row(3)[c] = -126.0f * 128 - 64;
  }
  return x;
}

/// X is what values are multiplied by. Integers are exact; runs of a group and minima are added up in floats.
void expect_exact_products(const IntegerWeights& w, const Matrix& x) {
  const PackedKernels& packed = w.panels.kernels();
  const Matrix turned = rotated(x, 1);
  const Matrix& given = w.is_rotated ? turned : x;
  const auto y = multiply(packed.many, w, given);
  const auto few = multiply(packed.few, w.panels, {0, w.panels.rows}, given, 0, kFewTokens);
  for (std::int64_t t = 0; t < x.rows; ++t) {
    for (std::int64_t r = 0; r < w.panels.rows; ++r) {
      double expected = 0, magnitude = 0;
      for (std::int64_t c = 0; c < x.cols; ++c) {
        expected += static_cast<double>(w.values.row(r)[c]) * static_cast<double>(x.row(t)[c]);
        magnitude += static_cast<double>(w.magnitudes.row(r)[c]) * std::abs(static_cast<double>(x.row(t)[c]));
      }
      const double tolerance = kUnit * static_cast<double>(5 * x.cols / kGroup + 2) * magnitude;
      const auto at = static_cast<std::size_t>(t * w.panels.rows + r);
      ASSERT_NEAR(static_cast<double>(y[at]), expected, tolerance) << t << " " << r;
      if (t < kFewTokens) {
        ASSERT_EQ(few[at], y[at]) << t << " " << r;
      }
    }
  }
}

/// Every bit of a block's integers and integer scales alike, so that they are at their limits, or random.
TEST_P(PackedIntegersTest, MultiplyTheLargestIntegersOfBlocks) {
  constexpr std::int64_t kCols = 1024;
  const Matrix x = largest_inputs(kCols);
  for (const IntegerSource& source : kIntegerSources) {
    if (source.floats()) continue;
    SCOPED_TRACE(source.name);
    const Blocks blocks(source.dtype, 2 * kernels(source.type).panel_rows, kCols, 1);
    std::int64_t r = 0;
    for (const int pattern : {0x00, 0xFF, 0x80, 0x7F}) {
      std::memset(blocks.block(r++, 0), pattern, static_cast<std::size_t>(row_bytes(source.dtype, kCols)));
    }
    for (const std::size_t at : Blocks::f16_offsets(source.dtype)) blocks.set_all_f16(at, 0x3C00);
    expect_exact_products(IntegerWeights(table(), blocks), x);
  }
}

/// Weights that are integers with scales of 1.
TEST_P(PackedIntegersTest, MultiplyTheLargestRoundedIntegers) {
  constexpr std::int64_t kCols = 1024;
  const Matrix x = largest_inputs(kCols);
  for (const auto& [name, type, dtype] : kRoundedSources) {
    SCOPED_TRACE(name);
    const bool is_rotated = type == PackedType::q8_rotated;
    const int low = type == PackedType::q4 ? -8 : -127, high = type == PackedType::q4 ? 7 : 127;
    std::mt19937 random(1);
    Matrix weights(2 * kernels(type).panel_rows, kCols);
    weights.fill([&] {
      const auto step = static_cast<int>(random() % static_cast<unsigned>(high - low + 1));
      return static_cast<float>(random() % 4 == 0 ? low : low + step);
    });
    std::fill_n(weights.row(0), kCols, static_cast<float>(low));
    std::fill_n(weights.row(1), kCols, static_cast<float>(high));
    Matrix magnitudes(weights.rows, kCols);
    for (std::int64_t r = 0; r < weights.rows; ++r) {
      for (std::int64_t c = 0; c < kCols; ++c) {
        if (c % kGroup == r % kGroup) weights.row(r)[c] = static_cast<float>(low);
        magnitudes.row(r)[c] = std::abs(weights.row(r)[c]);
      }
    }
    Panels panels =
        is_rotated ? Panels(kernels(type), rotated(weights, 1.0f / kGroup)) : Panels(kernels(type), weights);
    expect_exact_products({std::move(panels), std::move(weights), std::move(magnitudes), is_rotated}, x);
  }
}

TEST_P(PackedIntegersTest, GiveTheSameBitsHoweverRowsAndTokensAreCut) {
  for (const IntegerSource& source : kIntegerSources) {
    SCOPED_TRACE(source.name);
    const PackedKernels& packed = kernels(source.type);
    for (const std::int64_t cols : {7, 100, 1024, 2113}) {
      const IntegerWeights weights(table(), source, 9 * packed.panel_rows + 3, source.whole(cols), 3);
      const Panels& w = weights.panels;
      const Matrix x(53, w.cols, 4);
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
  for (std::size_t type = kPackedTypes - kIntegerTypes; type < kPackedTypes; ++type) {
    const PackedKernels& packed = table().packed[type];
    for (const MatmulKernel* kernel : {&packed.few, &packed.many, &packed.bulk}) {
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

/// So that matrices of several types may share it; but for the two kinds of `bulk` and for rotated ones.
TEST_P(PackedIntegersTest, TakeOneFormOfInputs) {
  const PackedKernels& q8 = kernels(PackedType::q8);
  for (const IntegerSource& source : kIntegerSources) {
    if (source.type == PackedType::q8_rotated) continue;
    const PackedKernels& other = kernels(source.type);
    EXPECT_EQ(other.few.prepare, q8.few.prepare);
    EXPECT_EQ(other.many.prepare, q8.many.prepare);
    const PackedKernels& alike = has_byte_inputs(source.type) ? kernels(PackedType::q4) : q8;
    EXPECT_EQ(other.bulk.prepare, alike.bulk.prepare);
    EXPECT_EQ(other.bulk.token_block, alike.bulk.token_block);
    EXPECT_EQ(other.few.token_block, q8.few.token_block);
    EXPECT_EQ(other.many.token_block, q8.many.token_block);
  }
}

TEST_P(PackedIntegersTest, WriteOnlyTheirRowsAndTokens) {
  constexpr std::int64_t kRows = 37, kTokens = 14;
  for (const IntegerSource& source : kIntegerSources) {
    const PackedKernels& packed = kernels(source.type);
    const std::int64_t cols = source.whole(20);
    const IntegerWeights w(table(), source, kRows, cols, 6);
    const Matrix x(kTokens, cols, 7);
    for (const MatmulKernel* kernel : {&packed.few, &packed.many, &packed.bulk}) {
      std::vector<std::byte> input(kernel->input_bytes(kTokens, cols)), scratch(kernel->scratch_bytes(cols));
      kernel->prepare(x.row(0), cols, 0, kTokens, cols, input.data());
      expect_writes_only(kTokens, kRows, [&](float* y, std::int64_t stride) {
        kernel->multiply({w.panels.panel(0), kRows, cols, input.data(), kTokens, y, stride, scratch.data()});
      });
    }
  }
}

TEST_P(PackedIntegersTest, InputsThatAreNotFiniteShowInTheirTokensAlone) {
  constexpr std::int64_t kTokens = 5;
  for (const IntegerSource& source : kIntegerSources) {
    const PackedKernels& packed = kernels(source.type);
    for (const std::int64_t cols : {45, 64, 200}) {
      const IntegerWeights w(table(), source, 19, source.whole(cols), 8);
      for (const float bad : {kNan, kInfinity, -kInfinity}) {
        for (const std::int64_t place : {std::int64_t{0}, std::int64_t{13}, std::int64_t{31}, cols - 1}) {
          const Matrix x(kTokens, w.panels.cols, 9);
          x.row(2)[place] = bad;
          for (const MatmulKernel* kernel : {&packed.few, &packed.many, &packed.bulk}) {
            const auto y = multiply(*kernel, w, x);
            for (std::int64_t t = 0; t < kTokens; ++t) {
              for (std::int64_t r = 0; r < w.panels.rows; ++r) {
                const float value = y[static_cast<std::size_t>(t * w.panels.rows + r)];
                ASSERT_EQ(std::isfinite(value), t != 2) << source.name << r << " " << t << " " << bad;
              }
            }
          }
        }
      }
    }
  }
}

TEST_P(PackedIntegersTest, ScalesAndMinimaThatAreNotFiniteShowInTheirRowsAlone) {
  constexpr std::int64_t kRows = 19, kBad = 5, kTokens = 5;
  for (const IntegerSource& source : kIntegerSources) {
    if (source.floats()) continue;
    const PackedKernels& packed = kernels(source.type);
    const std::int64_t cols = source.whole(96) * 2;
    const Matrix x(kTokens, cols, 9);
    for (const int bad : {0x7C00, 0xFC00, 0x7E00, 0x7C01}) {
      for (const std::size_t offset : Blocks::f16_offsets(source.dtype)) {
        const Blocks blocks(source.dtype, kRows, cols, 8);
        blocks.set_f16(kBad, cols - block_elements(source.dtype), offset, static_cast<std::uint16_t>(bad));
        const Panels w(table(), blocks);
        for (const MatmulKernel* kernel : {&packed.few, &packed.many, &packed.bulk}) {
          const auto y = multiply(*kernel, w, x);
          for (std::size_t i = 0; i < y.size(); ++i) {
            ASSERT_EQ(std::isfinite(y[i]), i % kRows != kBad) << source.name << ", offset " << offset;
          }
        }
      }
    }
  }
}

TEST_P(PackedIntegersTest, TakeZeroTinyAndHugeInputs) {
  for (const auto& [name, type, dtype] : kRoundedSources) {
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
