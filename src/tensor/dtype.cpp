#include "qgen/tensor/dtype.h"

#include <algorithm>
#include <array>

namespace qgen {
namespace {

struct Row {
  std::string_view name;
  std::int64_t block_elements;
  std::int64_t block_bytes;
};

// Blocks as GGUF defines them (ggml-common.h of the ggml library): f16 scales and packed integers.
constexpr std::array<Row, 25> kRows{
    {{"F32", 1, 4},      {"F16", 1, 2},      {"BF16", 1, 2},     {"Q8_0", 32, 34},   {"Q4_0", 32, 18},
     {"Q4_1", 32, 20},   {"Q5_0", 32, 22},   {"Q5_1", 32, 24},   {"Q2_K", 256, 84},  {"Q3_K", 256, 110},
     {"Q4_K", 256, 144}, {"Q5_K", 256, 176}, {"Q6_K", 256, 210}, {"IQ4_NL", 32, 18}, {"IQ4_XS", 256, 136},
     {"I8", 1, 1},       {"U8", 1, 1},       {"I16", 1, 2},      {"U16", 1, 2},      {"I32", 1, 4},
     {"U32", 1, 4},      {"I64", 1, 8},      {"U64", 1, 8},      {"F64", 1, 8},      {"BOOL", 1, 1}}};

constexpr const Row& row(DType dtype) noexcept {
  return kRows[static_cast<std::size_t>(dtype)];
}

}  // namespace

std::int64_t block_elements(DType dtype) noexcept {
  return row(dtype).block_elements;
}

std::int64_t block_bytes(DType dtype) noexcept {
  return row(dtype).block_bytes;
}

std::optional<std::int64_t> tensor_bytes(DType dtype, std::span<const std::int64_t> shape) noexcept {
  std::int64_t bytes = block_bytes(dtype);
  for (std::size_t i = 0; i < shape.size(); ++i) {
    const std::int64_t blocks = i + 1 == shape.size() ? shape[i] / block_elements(dtype) : shape[i];
    if (__builtin_mul_overflow(bytes, std::max<std::int64_t>(blocks, 1), &bytes)) return std::nullopt;
  }
  return std::ranges::find(shape, 0) == shape.end() ? bytes : 0;
}

std::size_t dtype_alignment(DType dtype) noexcept {
  return row(dtype).block_elements > 1 ? 1 : static_cast<std::size_t>(row(dtype).block_bytes);
}

std::string_view dtype_name(DType dtype) noexcept {
  return row(dtype).name;
}

std::optional<DType> dtype_from_safetensors(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name && kRows[i].block_elements == 1) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace qgen
