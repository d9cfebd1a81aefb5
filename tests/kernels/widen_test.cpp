#include "kernels/kernel_test.h"
#include "qgen/tensor/block_format.h"

namespace qgen::test {
namespace {

using WidenTest = KernelTest;
QGEN_FOR_ALL_TABLES(WidenTest);

TEST_P(WidenTest, IsExactForEverySixteenBitPattern) {
  std::vector<std::uint16_t> patterns(65536);
  for (std::size_t i = 0; i < patterns.size(); ++i) patterns[i] = static_cast<std::uint16_t>(i);
  std::vector<float> wide(patterns.size());
  for (const DType dtype : {DType::f16, DType::bf16}) {
    table().widen[static_cast<std::size_t>(dtype)](reinterpret_cast<const std::byte*>(patterns.data()), 65536,
                                                   wide.data());
    for (std::size_t i = 0; i < patterns.size(); ++i) {
      const float expected = dtype == DType::f16 ? f16_to_f32(patterns[i]) : bf16_to_f32(patterns[i]);
      if (std::isnan(expected)) {
        // Processors may set the quiet bit.
        ASSERT_TRUE(std::isnan(wide[i])) << i;
      } else {
        ASSERT_TRUE(same_bits(&wide[i], &expected, 1)) << i << " became " << wide[i];
      }
    }
  }
}

TEST_P(WidenTest, StaysWithinBoundsOnAllLengthsAndAlignments) {
  RandomFloats random(1);
  for (const DType dtype : kWeightDTypes) {
    for (std::int64_t n = 0; n <= 2 * lanes() + 1; ++n) {
      for (const auto edge : {GuardedBytes::Edge::upper, GuardedBytes::Edge::lower}) {
        // One byte off at the lower edge, so that elements are unaligned.
        const std::size_t shift = edge == GuardedBytes::Edge::lower ? 1 : 0;
        const GuardedBytes source(static_cast<std::size_t>(n * element_bytes(dtype)) + shift, edge);
        const GuardedBytes wide(static_cast<std::size_t>(n) * sizeof(float), edge);
        const std::vector<float> values = random.vector(n);
        for (std::int64_t i = 0; i < n; ++i) {
          write_element(source.data() + shift + i * element_bytes(dtype), values[static_cast<std::size_t>(i)],
                        dtype);
        }
        table().widen[static_cast<std::size_t>(dtype)](source.data() + shift, n, wide.floats());
        for (std::int64_t i = 0; i < n; ++i) {
          ASSERT_EQ(wide.floats()[i], rounded(values[static_cast<std::size_t>(i)], dtype))
              << i << " of " << n;
        }
      }
    }
  }
}

TEST_P(WidenTest, GivesTheValuesOfBlocks) {
  for (std::size_t type = 0; type < kWeightTypes; ++type) {
    const auto dtype = static_cast<DType>(type);
    const std::int64_t n = 3 * block_elements(dtype);
    std::vector<std::byte> blocks(static_cast<std::size_t>(row_bytes(dtype, n)));
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::byte>(i * 37 % 61);
    std::vector<float> wide(static_cast<std::size_t>(n)), expected(wide);
    table().widen[type](blocks.data(), n, wide.data());
    dequantizer(dtype)(blocks.data(), n, expected.data());
    EXPECT_TRUE(same_bits(wide.data(), expected.data(), n)) << dtype_name(dtype);
  }
}

}  // namespace
}  // namespace qgen::test
