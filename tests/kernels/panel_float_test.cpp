#include "kernels/kernel_test.h"
#include "qgen/kernels/reference.h"

namespace qgen::test {
namespace {

using PanelFloatTest = KernelTest;
QGEN_FOR_ALL_TABLES(PanelFloatTest);

constexpr PackedType kFloatTypes[] = {PackedType::f32, PackedType::f16, PackedType::bf16};

DType dtype_of(PackedType type) {
  return kWeightDTypes[static_cast<std::size_t>(type)];
}

/// A matrix of floats, its last byte followed by memory that must not be touched, and its panels, which have
/// exactly the promised size.
class Panels {
 public:
  Panels(const KernelTable& table, PackedType type, std::int64_t rows, std::int64_t cols, std::uint32_t seed,
         std::int64_t padding = 0)
      : kernels_(table.packed[static_cast<std::size_t>(type)]),
        type_(type),
        rows_(rows),
        cols_(cols),
        stride_(cols + padding),
        floats_(static_cast<std::size_t>(rows == 0 ? 0 : (rows - 1) * stride_ + cols) * sizeof(float)),
        panel_bytes_(static_cast<std::int64_t>(kernels_.panel_bytes(cols))),
        panels_(
            static_cast<std::size_t>((rows + kernels_.panel_rows - 1) / kernels_.panel_rows * panel_bytes_)) {
    RandomFloats random(seed);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) at(r, c) = random.next();
    }
    pack();
  }
  [[nodiscard]] float& at(std::int64_t r, std::int64_t c) { return floats_.floats()[r * stride_ + c]; }
  void pack() {
    for (std::int64_t r = 0; r < rows_; r += kernels_.panel_rows) {
      kernels_.pack(floats_.floats() + r * stride_, stride_, std::min(kernels_.panel_rows, rows_ - r), cols_,
                    panels_.data() + r / kernels_.panel_rows * panel_bytes_);
    }
  }
  /// The weight as the type holds it.
  [[nodiscard]] double rounded_at(std::int64_t r, std::int64_t c) const {
    return static_cast<double>(rounded(floats_.floats()[r * stride_ + c], dtype_of(type_)));
  }
  /// The panel that begins with that row.
  [[nodiscard]] const std::byte* panel(std::int64_t row) const {
    return panels_.data() + row / kernels_.panel_rows * panel_bytes_;
  }
  [[nodiscard]] const PackedKernels& kernels() const { return kernels_; }
  [[nodiscard]] PackedType type() const { return type_; }
  [[nodiscard]] std::int64_t rows() const { return rows_; }
  [[nodiscard]] std::int64_t cols() const { return cols_; }
  [[nodiscard]] std::int64_t panel_bytes() const { return panel_bytes_; }

 private:
  PackedKernels kernels_;
  PackedType type_;
  std::int64_t rows_, cols_, stride_;
  GuardedBytes floats_;
  std::int64_t panel_bytes_;
  GuardedBytes panels_;
};

/// X[tokens, cols], tokens `stride` floats apart, up to memory that must not be touched.
struct Input {
  Input(std::int64_t token_count, std::int64_t cols, std::uint32_t seed)
      : tokens(token_count),
        stride(cols + 3),
        values(static_cast<std::size_t>(tokens == 0 ? 0 : (tokens - 1) * stride + cols) * sizeof(float)) {
    RandomFloats random(seed);
    for (std::int64_t i = 0; tokens > 0 && i < (tokens - 1) * stride + cols; ++i) {
      values.floats()[i] = random.next();
    }
  }
  [[nodiscard]] float* row(std::int64_t t) const { return values.floats() + t * stride; }

  std::int64_t tokens, stride;
  GuardedBytes values;
};

/// Prepares tokens [first, first + tokens) and multiplies rows [begin, end), begin that of a panel:
/// Y[tokens, end - begin]. All memory has exactly the promised size.
std::vector<float> multiply(const MatmulKernel& kernel, const Panels& w, const Input& x, std::int64_t first,
                            std::int64_t tokens, std::int64_t begin, std::int64_t end) {
  return multiply_guarded(kernel, w.panel(begin), end - begin, w.cols(), x.row(first), x.stride, tokens);
}

/// Checks Y against double precision. `chain` is the number of roundings on the way to an output, each of
/// which is wrong by at most kUnit times the sum of the magnitudes of the products.
void expect_near_reference(const std::vector<float>& y, const Panels& w, const Input& x, double chain,
                           DType input_type) {
  for (std::int64_t t = 0; t < x.tokens; ++t) {
    for (std::int64_t r = 0; r < w.rows(); ++r) {
      double expected = 0, magnitude = 0;
      for (std::int64_t c = 0; c < w.cols(); ++c) {
        const double product = w.rounded_at(r, c) * static_cast<double>(rounded(x.row(t)[c], input_type));
        expected += product;
        magnitude += std::abs(product);
      }
      // The last term is what products of bf16 lose by taking subnormals for zeros.
      ASSERT_NEAR(static_cast<double>(y[static_cast<std::size_t>(t * w.rows() + r)]), expected,
                  chain * kUnit * magnitude + 1e-36)
          << "row " << r << " of " << w.rows() << ", token " << t << " of " << x.tokens << ", cols "
          << w.cols() << ", " << dtype_name(dtype_of(w.type()));
    }
  }
}

/// Lengths from nothing to two vectors and one more, then around blocks of columns and rows of a model.
std::vector<std::int64_t> column_counts(std::int64_t lanes) {
  std::vector<std::int64_t> counts;
  for (std::int64_t n = 0; n <= 2 * lanes + 1; ++n) counts.push_back(n);
  for (const std::int64_t n : {63, 64, 65, 129, 511, 512, 513, 1023, 1031}) counts.push_back(n);
  return counts;
}

/// Two chains at least; the products are rounded too where there is no fused multiply-add.
double few_chain(std::int64_t cols) {
  return static_cast<double>(cols) / 2 + 8;
}

/// One chain for each 512 units of one or two columns.
double many_chain(std::int64_t cols) {
  return static_cast<double>(std::min<std::int64_t>(cols, 1024)) + static_cast<double>(cols) / 512 + 4;
}

/// Whether `bulk` rounds inputs to bf16.
bool bulk_rounds(const KernelTable& table, PackedType type) {
  return type == PackedType::bf16 && table.probe.bf16 != nullptr;
}

TEST_P(PanelFloatTest, PanelsAreWholeCacheLinesAndHoldAllColumns) {
  for (const PackedType type : kFloatTypes) {
    const PackedKernels& kernels = table().packed[static_cast<std::size_t>(type)];
    for (std::int64_t cols = 0; cols < 200; ++cols) {
      const auto bytes = static_cast<std::int64_t>(kernels.panel_bytes(cols));
      EXPECT_EQ(bytes % 64, 0);
      EXPECT_GE(bytes, cols * kernels.panel_rows * element_bytes(dtype_of(type)));
    }
  }
}

TEST_P(PanelFloatTest, Bf16LiesByPairsOfColumnsWithZerosAroundIt) {
  const std::int64_t panel_rows = lanes(), rows = panel_rows - 1, cols = 37;
  Panels w(table(), PackedType::bf16, rows, cols, 1);
  const auto panel_cols = w.panel_bytes() / 2 / panel_rows;
  for (std::int64_t c = 0; c < panel_cols; ++c) {
    for (std::int64_t r = 0; r < panel_rows; ++r) {
      std::uint16_t bits = 0xFFFF;
      std::memcpy(&bits, w.panel(0) + ((c / 2 * panel_rows + r) * 2 + c % 2) * 2, sizeof bits);
      ASSERT_EQ(bits, r < rows && c < cols ? f32_to_bf16(w.at(r, c)) : 0) << r << " " << c;
    }
  }
}

TEST_P(PanelFloatTest, PackingRoundsToNearestEvenAndKeepsWhatIsNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  const std::vector<float> hard{
      0.0f,     -0.0f,    1.0f + 0x1p-8f, 1.0f + 0x3p-8f, 1.0f + 0x1p-11f, 1.0f + 0x3p-11f,
      0x1p-24f, 0x1p-25f, 0x3p-25f,       0x1p-133f,      0x1p-149f,       65504.0f,
      65519.0f, 65520.0f, 3.4028235e38f,  infinity,       -infinity,       std::nanf("1")};
  for (const PackedType type : kFloatTypes) {
    for (const float value : hard) {
      // Alone in its row, because others times zero may be NaN.
      Panels alone(table(), type, 1, 1, 1);
      alone.at(0, 0) = value;
      alone.pack();
      Input one(1, 1, 1);
      *one.row(0) = 1.0f;
      const float got = multiply(alone.kernels().few, alone, one, 0, 1, 0, 1)[0];
      const float expected = rounded(value, dtype_of(type));
      ASSERT_TRUE(got == expected || (std::isnan(got) && std::isnan(expected))) << value << " became " << got;
    }
  }
}

TEST_P(PanelFloatTest, MatchesReferenceOnAllShapes) {
  for (const PackedType type : kFloatTypes) {
    std::int64_t step = 0;
    for (const std::int64_t cols : column_counts(lanes())) {
      const auto seed = static_cast<std::uint32_t>(step);
      const Panels w(table(), type, 1 + step * 7 % 141, cols, seed, step % 5);
      const Input few_x(1 + step % kFewTokens, cols, seed + 1), many_x(1 + step * 5 % 31, cols, seed + 2);
      expect_near_reference(multiply(w.kernels().few, w, few_x, 0, few_x.tokens, 0, w.rows()), w, few_x,
                            few_chain(cols), DType::f32);
      expect_near_reference(multiply(w.kernels().many, w, many_x, 0, many_x.tokens, 0, w.rows()), w, many_x,
                            many_chain(cols), DType::f32);
      expect_near_reference(multiply(w.kernels().bulk, w, many_x, 0, many_x.tokens, 0, w.rows()), w, many_x,
                            many_chain(cols), bulk_rounds(table(), type) ? DType::bf16 : DType::f32);
      ++step;
    }
  }
}

TEST_P(PanelFloatTest, NoRowsOrNoTokensGiveNothing) {
  for (const PackedType type : kFloatTypes) {
    const Panels none(table(), type, 0, 70, 1), some(table(), type, 20, 70, 1);
    const Input x(3, 70, 2), no_x(0, 70, 2);
    for (const auto kernel : {&PackedKernels::few, &PackedKernels::many, &PackedKernels::bulk}) {
      EXPECT_TRUE(multiply(none.kernels().*kernel, none, x, 0, 3, 0, 0).empty());
      EXPECT_TRUE(multiply(some.kernels().*kernel, some, no_x, 0, 0, 0, 20).empty());
    }
  }
}

/// Compares every way of cutting the work with all of it at once, bit for bit.
void expect_same_however_cut(const MatmulKernel& kernel, const Panels& w, const Input& x,
                             const std::vector<std::int64_t>& token_counts) {
  const auto whole = multiply(kernel, w, x, 0, x.tokens, 0, w.rows());
  const std::int64_t panel_rows = w.kernels().panel_rows;
  for (const std::int64_t tokens : token_counts) {
    for (const std::int64_t first : {std::int64_t{0}, (x.tokens - tokens) / 2, x.tokens - tokens}) {
      const std::int64_t begin = (first * 5 + tokens) % w.rows() / panel_rows * panel_rows,
                         end = begin + 1 + (tokens * 7) % (w.rows() - begin);
      const auto part = multiply(kernel, w, x, first, tokens, begin, end);
      for (std::int64_t t = 0; t < tokens; ++t) {
        ASSERT_TRUE(same_bits(whole.data() + (first + t) * w.rows() + begin, part.data() + t * (end - begin),
                              end - begin))
            << dtype_name(dtype_of(w.type())) << ": tokens " << first << " + " << tokens << ", rows " << begin
            << " to " << end;
      }
    }
  }
}

TEST_P(PanelFloatTest, FewGivesTheSameBitsHoweverRowsAndTokensAreCut) {
  std::vector<std::int64_t> token_counts;
  for (std::int64_t tokens = 1; tokens <= kFewTokens; ++tokens) token_counts.push_back(tokens);
  for (const PackedType type : kFloatTypes) {
    for (const std::int64_t cols : {7, 100, 2100}) {
      const Panels w(table(), type, 150, cols, 3);
      expect_same_however_cut(w.kernels().few, w, Input(kFewTokens, cols, 4), token_counts);
    }
  }
}

TEST_P(PanelFloatTest, ManyAndBulkGiveTheSameBitsHoweverRowsAndTokensAreCut) {
  for (const PackedType type : kFloatTypes) {
    for (const std::int64_t cols : {7, 100, 1601}) {
      const Panels w(table(), type, 150, cols, 3);
      for (const MatmulKernel* kernel : {&w.kernels().many, &w.kernels().bulk}) {
        expect_same_however_cut(*kernel, w, Input(67, cols, 4), {1, 2, 5, 11, 12, 13, 17, 24, 40, 67});
      }
    }
  }
}

TEST_P(PanelFloatTest, PreparesTokensInAnyRangesOfBlocks) {
  constexpr std::int64_t kTokens = 130, kCols = 77;
  const Input x(kTokens, kCols, 5);
  for (const PackedType type : kFloatTypes) {
    const PackedKernels& kernels = table().packed[static_cast<std::size_t>(type)];
    for (const MatmulKernel* kernel : {&kernels.few, &kernels.many, &kernels.bulk}) {
      std::vector<std::byte> once(kernel->input_bytes(kTokens, kCols)), parts(once.size());
      kernel->prepare(x.row(0), x.stride, 0, kTokens, kCols, once.data());
      for (std::int64_t t = 0; t < kTokens; t += 3 * kernel->token_block) {
        kernel->prepare(x.row(0), x.stride, t, std::min(kTokens, t + 3 * kernel->token_block), kCols,
                        parts.data());
      }
      EXPECT_EQ(once, parts);
    }
  }
}

TEST_P(PanelFloatTest, WritesOnlyItsRowsAndTokens) {
  constexpr std::int64_t kRows = 37, kCols = 20, kTokens = 14;
  for (const PackedType type : kFloatTypes) {
    const Panels w(table(), type, kRows, kCols, 6);
    const Input x(kTokens, kCols, 7);
    for (const MatmulKernel* kernel : {&w.kernels().few, &w.kernels().many, &w.kernels().bulk}) {
      std::vector<std::byte> input(kernel->input_bytes(kTokens, kCols)),
          scratch(kernel->scratch_bytes(kCols));
      kernel->prepare(x.row(0), x.stride, 0, kTokens, kCols, input.data());
      expect_writes_only(kTokens, kRows, [&](float* y, std::int64_t stride) {
        kernel->multiply({w.panel(0), kRows, kCols, input.data(), kTokens, y, stride, scratch.data()});
      });
    }
  }
}

TEST_P(PanelFloatTest, NonFiniteValuesReachOnlyTheirOwnOutputs) {
  constexpr std::int64_t kRows = 19, kCols = 45, kTokens = 5;
  for (const PackedType type : kFloatTypes) {
    for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
      Panels w(table(), type, kRows, kCols, 8);
      w.at(4, 44) = bad;
      w.pack();
      const Input x(kTokens, kCols, 9);
      for (std::int64_t t = 0; t < kTokens; ++t) x.row(t)[44] = 1.0f;
      x.row(2)[1] = bad;
      for (const MatmulKernel* kernel : {&w.kernels().few, &w.kernels().many, &w.kernels().bulk}) {
        const auto y = multiply(*kernel, w, x, 0, kTokens, 0, kRows);
        for (std::int64_t t = 0; t < kTokens; ++t) {
          for (std::int64_t r = 0; r < kRows; ++r) {
            ASSERT_EQ(std::isfinite(y[static_cast<std::size_t>(t * kRows + r)]), r != 4 && t != 2)
                << r << " " << t;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace qgen::test
