#include "kernels/kernel_test.h"
#include "qgen/kernels/reference.h"

namespace qgen::test {
namespace {

using MatmulTest = KernelTest;
QGEN_FOR_ALL_TABLES(MatmulTest);

/// A weight matrix whose last byte is followed by memory that must not be touched.
class Weights {
 public:
  Weights(DType dtype, std::int64_t rows, std::int64_t cols, std::int64_t padding, std::uint32_t seed)
      : stride_(cols * element_bytes(dtype) + padding),
        memory_(static_cast<std::size_t>(rows == 0 ? 0 : (rows - 1) * stride_ + cols * element_bytes(dtype))),
        view_{memory_.data(), dtype, rows, cols, stride_} {
    RandomFloats random(seed);
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) {
        write_element(memory_.data() + r * stride_ + c * element_bytes(dtype), random.next(), dtype);
      }
    }
  }
  [[nodiscard]] const TensorView& view() const { return view_; }

 private:
  std::int64_t stride_;
  GuardedBytes memory_;
  TensorView view_;
};

/// X[tokens, cols], tokens `stride` floats apart.
struct Input {
  Input(std::int64_t token_count, std::int64_t cols, std::uint32_t seed)
      : tokens(token_count), stride(cols + 3), values(RandomFloats(seed).vector(tokens * stride + 1)) {}
  [[nodiscard]] const float* row(std::int64_t t) const { return values.data() + t * stride; }

  std::int64_t tokens, stride;
  std::vector<float> values;
};

/// Prepares tokens [first, first + tokens) and multiplies rows [begin, end): Y[tokens, end - begin]. All
/// memory has exactly the promised size.
std::vector<float> multiply(const MatmulKernel& kernel, const TensorView& w, const Input& x,
                            std::int64_t first, std::int64_t tokens, std::int64_t begin, std::int64_t end) {
  const GuardedBytes input(kernel.input_bytes(tokens, w.cols));
  const GuardedBytes scratch(kernel.scratch_bytes(w.cols));
  for (std::int64_t t = 0; t < tokens; t += kernel.token_block) {
    kernel.prepare(x.row(first), x.stride, t, std::min(t + kernel.token_block, tokens), w.cols, input.data());
  }
  const std::int64_t rows = end - begin;
  const GuardedBytes y(static_cast<std::size_t>(tokens * rows) * sizeof(float));
  std::fill_n(y.floats(), tokens * rows, 12345.0f);
  kernel.multiply(
      {w.row(begin), w.stride, rows, w.cols, input.data(), tokens, y.floats(), rows, scratch.data()});
  return {y.floats(), y.floats() + tokens * rows};
}

/// Checks Y against double precision. `chain` is the number of roundings on the way to an output, each of
/// which is wrong by at most kUnit times the sum of the magnitudes of the products.
void expect_near_reference(const std::vector<float>& y, const TensorView& w, const Input& x, double chain,
                           DType input_type) {
  std::vector<double> token(static_cast<std::size_t>(w.cols)), expected(static_cast<std::size_t>(w.rows));
  for (std::int64_t t = 0; t < x.tokens; ++t) {
    for (std::int64_t c = 0; c < w.cols; ++c) {
      token[static_cast<std::size_t>(c)] = static_cast<double>(rounded(x.row(t)[c], input_type));
    }
    reference::matvec(w, token.data(), expected.data());
    for (std::int64_t r = 0; r < w.rows; ++r) {
      double magnitude = 0;
      for (std::int64_t c = 0; c < w.cols; ++c) {
        magnitude += std::abs(reference::element(w, r, c) * token[static_cast<std::size_t>(c)]);
      }
      // The last term is what VDPBF16PS loses by taking subnormals for zeros.
      ASSERT_NEAR(static_cast<double>(y[static_cast<std::size_t>(t * w.rows + r)]),
                  expected[static_cast<std::size_t>(r)], chain * kUnit * magnitude + 1e-36)
          << "row " << r << " of " << w.rows << ", token " << t << " of " << x.tokens << ", cols " << w.cols
          << ", " << dtype_name(w.dtype);
    }
  }
}

/// Lengths from nothing to two vectors and one more, then around lines, blocks and a whole row of a model.
std::vector<std::int64_t> column_counts(std::int64_t lanes) {
  std::vector<std::int64_t> counts;
  for (std::int64_t n = 0; n <= 2 * lanes + 1; ++n) counts.push_back(n);
  for (const std::int64_t n : {63, 64, 65, 129, 511, 512, 513, 1023, 1031}) counts.push_back(n);
  return counts;
}

double few_chain(std::int64_t cols, std::int64_t lanes) {
  return static_cast<double>(cols) / static_cast<double>(lanes) + 8;
}

double many_chain(std::int64_t cols) {
  return static_cast<double>(std::min<std::int64_t>(cols, 1024)) + static_cast<double>(cols) / 512 + 4;
}

TEST_P(MatmulTest, FewMatchesReferenceOnAllLengthsAndAlignments) {
  for (const DType dtype : kWeightDTypes) {
    const MatmulKernel& few = table().weights[static_cast<std::size_t>(dtype)].few;
    std::int64_t step = 0;
    for (const std::int64_t cols : column_counts(lanes())) {
      const std::int64_t rows = 1 + step % 21, tokens = 1 + step % kFewTokens, padding = step % 5;
      const Weights w(dtype, rows, cols, padding, static_cast<std::uint32_t>(step));
      const Input x(tokens, cols, static_cast<std::uint32_t>(step + 1));
      expect_near_reference(multiply(few, w.view(), x, 0, tokens, 0, rows), w.view(), x,
                            few_chain(cols, lanes()), DType::f32);
      ++step;
    }
  }
}

TEST_P(MatmulTest, ManyAndBulkMatchReferenceOnAllLengthsAndAlignments) {
  for (const DType dtype : kWeightDTypes) {
    const WeightKernels& kernels = table().weights[static_cast<std::size_t>(dtype)];
    const bool rounds = table().name == "avx512bf16" && dtype == DType::bf16;
    std::int64_t step = 0;
    for (const std::int64_t cols : column_counts(lanes())) {
      const std::int64_t rows = 1 + step * 7 % 141, tokens = 1 + step * 5 % 31, padding = step % 5;
      const Weights w(dtype, rows, cols, padding, static_cast<std::uint32_t>(step));
      const Input x(tokens, cols, static_cast<std::uint32_t>(step + 1));
      expect_near_reference(multiply(kernels.many, w.view(), x, 0, tokens, 0, rows), w.view(), x,
                            many_chain(cols), DType::f32);
      expect_near_reference(multiply(kernels.bulk, w.view(), x, 0, tokens, 0, rows), w.view(), x,
                            many_chain(cols), rounds ? DType::bf16 : DType::f32);
      ++step;
    }
  }
}

TEST_P(MatmulTest, ReadsWeightsAtAnyByteOffset) {
  constexpr std::int64_t kRows = 5, kCols = 37;
  for (const DType dtype : kWeightDTypes) {
    const WeightKernels& kernels = table().weights[static_cast<std::size_t>(dtype)];
    const Weights w(dtype, kRows, kCols, 0, 1);
    const Input x(3, kCols, 2);
    const auto few = multiply(kernels.few, w.view(), x, 0, 3, 0, kRows);
    const auto many = multiply(kernels.many, w.view(), x, 0, 3, 0, kRows);
    const auto bulk = multiply(kernels.bulk, w.view(), x, 0, 3, 0, kRows);
    for (std::size_t offset = 0; offset < 8; ++offset) {
      std::vector<std::byte> moved(static_cast<std::size_t>(w.view().bytes()) + offset);
      std::memcpy(moved.data() + offset, w.view().data, static_cast<std::size_t>(w.view().bytes()));
      TensorView view = w.view();
      view.data = moved.data() + offset;
      EXPECT_EQ(multiply(kernels.few, view, x, 0, 3, 0, kRows), few) << offset;
      EXPECT_EQ(multiply(kernels.many, view, x, 0, 3, 0, kRows), many) << offset;
      EXPECT_EQ(multiply(kernels.bulk, view, x, 0, 3, 0, kRows), bulk) << offset;
    }
  }
}

/// Compares every way of cutting the work with all of it at once, bit for bit.
void expect_same_however_cut(const MatmulKernel& kernel, const TensorView& w, const Input& x,
                             const std::vector<std::int64_t>& token_counts, std::string_view what) {
  const auto whole = multiply(kernel, w, x, 0, x.tokens, 0, w.rows);
  for (const std::int64_t tokens : token_counts) {
    for (const std::int64_t first : {std::int64_t{0}, (x.tokens - tokens) / 2, x.tokens - tokens}) {
      const std::int64_t begin = (first * 5 + tokens) % w.rows,
                         end = begin + 1 + (tokens * 7) % (w.rows - begin);
      const auto part = multiply(kernel, w, x, first, tokens, begin, end);
      for (std::int64_t t = 0; t < tokens; ++t) {
        ASSERT_TRUE(same_bits(whole.data() + (first + t) * w.rows + begin, part.data() + t * (end - begin),
                              end - begin))
            << what << ": tokens " << first << " + " << tokens << ", rows " << begin << " to " << end;
      }
    }
  }
}

TEST_P(MatmulTest, FewGivesTheSameBitsHoweverRowsAndTokensAreCut) {
  std::vector<std::int64_t> token_counts;
  for (std::int64_t tokens = 1; tokens <= kFewTokens; ++tokens) token_counts.push_back(tokens);
  for (const DType dtype : kWeightDTypes) {
    for (const std::int64_t cols : {7, 100, 2100}) {
      const Weights w(dtype, 150, cols, 2, 3);
      expect_same_however_cut(table().weights[static_cast<std::size_t>(dtype)].few, w.view(),
                              Input(kFewTokens, cols, 4), token_counts, dtype_name(dtype));
    }
  }
}

TEST_P(MatmulTest, ManyAndBulkGiveTheSameBitsHoweverRowsAndTokensAreCut) {
  for (const DType dtype : kWeightDTypes) {
    for (const std::int64_t cols : {7, 100, 1601}) {
      const Weights w(dtype, 150, cols, 2, 3);
      const WeightKernels& kernels = table().weights[static_cast<std::size_t>(dtype)];
      for (const MatmulKernel* kernel : {&kernels.many, &kernels.bulk}) {
        expect_same_however_cut(*kernel, w.view(), Input(53, cols, 4), {1, 2, 5, 11, 12, 13, 17, 24, 40, 53},
                                dtype_name(dtype));
      }
    }
  }
}

TEST_P(MatmulTest, PreparesTokensInAnyRangesOfBlocks) {
  constexpr std::int64_t kTokens = 50, kCols = 77;
  const Input x(kTokens, kCols, 5);
  for (const WeightKernels& kernels : table().weights) {
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

TEST_P(MatmulTest, WritesOnlyItsRowsAndTokens) {
  constexpr std::int64_t kRows = 37, kCols = 20, kTokens = 14, kStride = kRows + 9;
  for (const DType dtype : kWeightDTypes) {
    const Weights w(dtype, kRows, kCols, 0, 6);
    const Input x(kTokens, kCols, 7);
    const WeightKernels& kernels = table().weights[static_cast<std::size_t>(dtype)];
    for (const MatmulKernel* kernel : {&kernels.few, &kernels.many, &kernels.bulk}) {
      std::vector<std::byte> input(kernel->input_bytes(kTokens, kCols)),
          scratch(kernel->scratch_bytes(kCols));
      kernel->prepare(x.row(0), x.stride, 0, kTokens, kCols, input.data());
      std::vector<float> y(static_cast<std::size_t>(kStride * (kTokens + 1)), 777.0f);
      kernel->multiply({w.view().data, w.view().stride, kRows, kCols, input.data(), kTokens, y.data(),
                        kStride, scratch.data()});
      for (std::size_t i = 0; i < y.size(); ++i) {
        const auto at = static_cast<std::int64_t>(i);
        const bool inside = at % kStride < kRows && at / kStride < kTokens;
        ASSERT_EQ(y[i] == 777.0f, !inside) << "row " << at % kStride << ", token " << at / kStride;
      }
    }
  }
}

TEST_P(MatmulTest, NonFiniteValuesReachOnlyTheirOwnOutputs) {
  constexpr std::int64_t kRows = 19, kCols = 45, kTokens = 5;
  for (const DType dtype : kWeightDTypes) {
    const Weights w(dtype, kRows, kCols, 0, 8);
    std::vector<std::byte> bad(w.view().data, w.view().data + w.view().bytes());
    TensorView view = w.view();
    view.data = bad.data();
    write_element(bad.data() + 4 * view.stride + 44 * element_bytes(dtype), std::nanf(""), dtype);
    Input x(kTokens, kCols, 9);
    x.values[static_cast<std::size_t>(2 * x.stride + 1)] = std::numeric_limits<float>::infinity();
    const WeightKernels& kernels = table().weights[static_cast<std::size_t>(dtype)];
    for (const MatmulKernel* kernel : {&kernels.few, &kernels.many, &kernels.bulk}) {
      const auto y = multiply(*kernel, view, x, 0, kTokens, 0, kRows);
      for (std::int64_t t = 0; t < kTokens; ++t) {
        for (std::int64_t r = 0; r < kRows; ++r) {
          ASSERT_EQ(std::isfinite(y[static_cast<std::size_t>(t * kRows + r)]), r != 4 && t != 2)
              << r << " " << t;
        }
      }
    }
  }
}

}  // namespace
}  // namespace qgen::test
