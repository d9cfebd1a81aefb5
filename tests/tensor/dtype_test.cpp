#include "qgen/tensor/dtype.h"

#include <gtest/gtest.h>

#include <array>
#include <string_view>
#include <vector>

#include "qgen/tensor/tensor_view.h"

namespace qgen {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::int64_t size;
};

// Names and sizes as the safetensors format defines them.
constexpr std::array<Row, 13> kRows{{{DType::f32, "F32", 4},
                                     {DType::f16, "F16", 2},
                                     {DType::bf16, "BF16", 2},
                                     {DType::i8, "I8", 1},
                                     {DType::u8, "U8", 1},
                                     {DType::i16, "I16", 2},
                                     {DType::u16, "U16", 2},
                                     {DType::i32, "I32", 4},
                                     {DType::u32, "U32", 4},
                                     {DType::i64, "I64", 8},
                                     {DType::u64, "U64", 8},
                                     {DType::f64, "F64", 8},
                                     {DType::boolean, "BOOL", 1}}};

TEST(DType, NamesAndSizesAreThoseOfSafetensors) {
  for (const Row& row : kRows) {
    EXPECT_EQ(dtype_name(row.dtype), row.name);
    EXPECT_EQ(block_elements(row.dtype), 1) << row.name;
    EXPECT_EQ(block_bytes(row.dtype), row.size) << row.name;
    EXPECT_EQ(dtype_alignment(row.dtype), static_cast<std::size_t>(row.size)) << row.name;
    EXPECT_EQ(dtype_from_safetensors(row.name), row.dtype) << row.name;
  }
}

struct BlockRow {
  DType dtype;
  std::string_view name;
  std::int64_t elements, bytes;
};

// As GGML_QUANT_SIZES of the gguf package has them.
constexpr std::array<BlockRow, 12> kBlockRows{{{DType::q8_0, "Q8_0", 32, 34},
                                               {DType::q4_0, "Q4_0", 32, 18},
                                               {DType::q4_1, "Q4_1", 32, 20},
                                               {DType::q5_0, "Q5_0", 32, 22},
                                               {DType::q5_1, "Q5_1", 32, 24},
                                               {DType::q2_k, "Q2_K", 256, 84},
                                               {DType::q3_k, "Q3_K", 256, 110},
                                               {DType::q4_k, "Q4_K", 256, 144},
                                               {DType::q5_k, "Q5_K", 256, 176},
                                               {DType::q6_k, "Q6_K", 256, 210},
                                               {DType::iq4_nl, "IQ4_NL", 32, 18},
                                               {DType::iq4_xs, "IQ4_XS", 256, 136}}};

TEST(DType, BlocksHaveTheSizesOfGgufAndNoPlaceInSafetensors) {
  for (const BlockRow& row : kBlockRows) {
    EXPECT_EQ(dtype_name(row.dtype), row.name);
    EXPECT_EQ(block_elements(row.dtype), row.elements) << row.name;
    EXPECT_EQ(block_bytes(row.dtype), row.bytes) << row.name;
    EXPECT_EQ(row_bytes(row.dtype, 3 * row.elements), 3 * row.bytes) << row.name;
    EXPECT_EQ(dtype_alignment(row.dtype), 1u) << row.name;
    EXPECT_EQ(dtype_from_safetensors(row.name), std::nullopt) << row.name;
  }
}

TEST(DType, UnknownNamesGiveNothing) {
  for (const std::string_view name : {"", "f32", "F32 ", "F8_E4M3", "BF", "BF160"}) {
    EXPECT_EQ(dtype_from_safetensors(name), std::nullopt) << name;
  }
}

TEST(DType, WeightTypesAreTheFloatsAndTheBlocks) {
  for (const Row& row : kRows) {
    const bool is_float = row.name == "F32" || row.name == "F16" || row.name == "BF16";
    EXPECT_EQ(is_weight_type(row.dtype), is_float) << row.name;
  }
  for (const BlockRow& row : kBlockRows) EXPECT_TRUE(is_weight_type(row.dtype)) << row.name;
}

TEST(TensorView, RowsAreStrideBytesApartEvenBeyond32Bits) {
  std::array<std::byte, 12> memory{};
  const TensorView view{memory.data(), DType::f16, 3, 2, 4};
  EXPECT_EQ(view.row(2), memory.data() + 8);
  EXPECT_EQ(view.bytes(), 12);
  const TensorView large{nullptr, DType::bf16, 151'936, 14'135, 28'270};
  EXPECT_EQ(large.bytes(), 4'295'230'720);
}

TEST(TensorBytes, CountWholeBlocksAndKnowWhatDoesNotFit) {
  using Shape = std::vector<std::int64_t>;
  constexpr std::int64_t kHalf = std::int64_t{1} << 62;
  EXPECT_EQ(tensor_bytes(DType::f32, Shape{}), 4);
  EXPECT_EQ(tensor_bytes(DType::bf16, Shape{3, 5}), 30);
  EXPECT_EQ(tensor_bytes(DType::q4_k, Shape{2, 3, 512}), 2 * 3 * 2 * 144);
  EXPECT_EQ(tensor_bytes(DType::f32, Shape{0, 5}), 0);
  EXPECT_EQ(tensor_bytes(DType::i8, Shape{kHalf}), kHalf);
  EXPECT_EQ(tensor_bytes(DType::i8, Shape{kHalf, 2}), std::nullopt);
  EXPECT_EQ(tensor_bytes(DType::f16, Shape{0, kHalf}), std::nullopt);
  EXPECT_EQ(tensor_bytes(DType::f16, Shape{kHalf, 0}), std::nullopt);
  EXPECT_EQ(tensor_bytes(DType::q8_0, Shape{32 * (kHalf / 17 + 1)}), std::nullopt);
}

}  // namespace
}  // namespace qgen
