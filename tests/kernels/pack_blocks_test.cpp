#include <set>

#include "kernels/packed_integers.h"

namespace qgen::test {
namespace {

using PackBlocksTest = KernelTest;
QGEN_FOR_ALL_TABLES(PackBlocksTest);

/// Multiplication by unit vectors rounds a few times, which is far less than a unit of any integer or scale.
void expect_same_values(const IntegerWeights& w) {
  const Matrix panels = rounded_times_127(w.panels);
  for (std::int64_t r = 0; r < w.panels.rows; ++r) {
    for (std::int64_t c = 0; c < w.panels.cols; ++c) {
      const double magnitude = static_cast<double>(w.magnitudes.row(r)[c]);
      ASSERT_NEAR(static_cast<double>(panels.row(r)[c]) / 127, static_cast<double>(w.values.row(r)[c]),
                  8 * kUnit * magnitude)
          << "row " << r << " of " << w.panels.rows << ", column " << c << " of " << w.panels.cols;
    }
  }
}

TEST_P(PackBlocksTest, KeepsEveryValue) {
  for (const IntegerSource& source : kIntegerSources) {
    if (source.floats()) continue;
    SCOPED_TRACE(source.name);
    const std::int64_t height = table().packed[static_cast<std::size_t>(source.type)].panel_rows;
    for (const std::int64_t blocks : {1, 2, 3}) {
      for (std::int64_t rows = 1; rows <= 2 * height + 1; rows += rows < height - 1 ? 3 : 1) {
        const auto seed = static_cast<std::uint32_t>(blocks * 100 + rows);
        expect_same_values(
            IntegerWeights(table(), Blocks(source.dtype, rows, blocks * source.whole(1), seed)));
      }
    }
  }
}

TEST_P(PackBlocksTest, KeepsScalesOfEverySize) {
  for (const IntegerSource& source : kIntegerSources) {
    if (source.floats()) continue;
    SCOPED_TRACE(source.name);
    const Blocks blocks(source.dtype, 64, source.whole(1), 7);
    std::int64_t r = 0;
    for (const int bits : {0x0000, 0x8000, 0x0001, 0x8001, 0x03FF, 0x0400, 0x3C00, 0xBC00, 0x7BFF, 0xFBFF}) {
      for (const std::size_t offset : Blocks::f16_offsets(source.dtype)) {
        blocks.set_f16(r++, 0, offset, static_cast<std::uint16_t>(bits));
      }
    }
    expect_same_values(IntegerWeights(table(), blocks));
  }
}

/// Every integer of a type appears, with the values of all others beside it.
TEST_P(PackBlocksTest, KeepsEveryIntegerOfAByte) {
  const Blocks blocks(DType::q8_0, 8, kGroup, 1);
  for (std::int64_t i = 0; i < 256; ++i) {
    blocks.block(i / kGroup, 0)[2 + i % kGroup] = static_cast<std::byte>(i);
  }
  blocks.set_all_f16(0, 0x3C00);
  const IntegerWeights w(table(), blocks);
  EXPECT_EQ(w.values.row(4)[0], -128.0f);
  expect_same_values(w);
}

TEST_P(PackBlocksTest, TakesTheBitsThatTheTypesSay) {
  constexpr std::int64_t kCols = 4096;
  for (std::size_t i = 0; i < kPackedTypes; ++i) {
    const PackedKernels& packed = table().packed[i];
    EXPECT_EQ(static_cast<double>(packed.panel_bytes(kCols)) * 8,
              packed_bits(static_cast<PackedType>(i)) * static_cast<double>(packed.panel_rows * kCols))
        << packed_type_name(static_cast<PackedType>(i));
  }
}

TEST_P(PackBlocksTest, ServesAllTypesThatFit) {
  std::set<DType> served;
  for (std::size_t i = 0; i < kWeightTypes; ++i) {
    if (table().pack_blocks[i] != nullptr) served.insert(static_cast<DType>(i));
  }
  EXPECT_EQ(served, (std::set<DType>{DType::q8_0, DType::q4_0, DType::q4_1, DType::q5_0, DType::q3_k,
                                     DType::q4_k, DType::q6_k, DType::iq4_nl}));
}

TEST(PackedTypes, HoldWhatFilesHold) {
  EXPECT_EQ(packed_type_of(DType::f32), PackedType::f32);
  EXPECT_EQ(packed_type_of(DType::f16), PackedType::f16);
  EXPECT_EQ(packed_type_of(DType::bf16), PackedType::bf16);
  for (const IntegerSource& source : kIntegerSources) {
    if (!source.floats()) {
      EXPECT_EQ(packed_type_of(source.dtype), source.type) << source.name;
    }
  }
  for (const DType dtype : {DType::q5_1, DType::q2_k, DType::q5_k, DType::iq4_xs}) {
    EXPECT_EQ(packed_type_of(dtype), PackedType::q8);
  }
}

}  // namespace
}  // namespace qgen::test
