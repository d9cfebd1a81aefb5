#include "qgen/tensor/dtype.h"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <string_view>

#include "qgen/tensor/tensor_view.h"

namespace qgen {
namespace {

struct Row {
  DType dtype;
  std::string_view name;
  std::size_t size;
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
    EXPECT_EQ(dtype_size(row.dtype), row.size) << row.name;
    EXPECT_EQ(dtype_from_name(row.name), row.dtype) << row.name;
  }
}

TEST(DType, UnknownNamesGiveNothing) {
  for (const std::string_view name : {"", "f32", "F32 ", "F8_E4M3", "BF", "BF160"}) {
    EXPECT_EQ(dtype_from_name(name), std::nullopt) << name;
  }
}

TEST(DType, WeightTypesAreTheFloatsWithKernels) {
  std::set<std::string_view> weight_types;
  for (const Row& row : kRows) {
    if (is_weight_type(row.dtype)) weight_types.insert(row.name);
  }
  EXPECT_EQ(weight_types, (std::set<std::string_view>{"F32", "F16", "BF16"}));
}

TEST(TensorView, RowsAreStrideBytesApartEvenBeyond32Bits) {
  std::array<std::byte, 12> memory{};
  const TensorView view{memory.data(), DType::f16, 3, 2, 4};
  EXPECT_EQ(view.row(2), memory.data() + 8);
  EXPECT_EQ(view.bytes(), 12);
  const TensorView large{nullptr, DType::bf16, 151'936, 14'135, 28'270};
  EXPECT_EQ(large.bytes(), 4'295'230'720);
}

}  // namespace
}  // namespace qgen
