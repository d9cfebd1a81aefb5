#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace qgen {

/// How stored tensors hold their elements: one by one, or in the blocks of the quantised formats of GGUF. The
/// order is that of the kernel tables' slots.
enum class DType : std::uint8_t {
  f32,
  f16,
  bf16,
  q8_0,
  q4_0,
  q4_1,
  q5_0,
  q5_1,
  q2_k,
  q3_k,
  q4_k,
  q5_k,
  q6_k,
  iq4_nl,
  iq4_xs,
  i8,
  u8,
  i16,
  u16,
  i32,
  u32,
  i64,
  u64,
  f64,
  boolean
};

/// How many leading DTypes are weight types, that is, can be widened to floats: all up to iq4_xs.
inline constexpr std::size_t kWeightTypes = 15;

/// Elements that are stored together: the size of a block, or 1.
[[nodiscard]] std::int64_t block_elements(DType dtype) noexcept;
inline constexpr std::size_t kMostBlockElements = 256;
/// Bytes of one block, or of one element where block_elements is 1.
[[nodiscard]] std::int64_t block_bytes(DType dtype) noexcept;
/// Bytes of `cols` elements, a multiple of block_elements.
[[nodiscard]] inline std::int64_t row_bytes(DType dtype, std::int64_t cols) noexcept {
  return cols / block_elements(dtype) * block_bytes(dtype);
}
/// Bytes of a tensor whose dimensions are `shape`, its rows (the last) a multiple of block_elements; one
/// element where `shape` is empty. Nothing where they do not fit 63 bits, empty dimensions taken for 1: so
/// any product of dimensions may be computed afterwards, also that of the columns of no rows.
[[nodiscard]] std::optional<std::int64_t> tensor_bytes(DType dtype,
                                                       std::span<const std::int64_t> shape) noexcept;
/// What addresses of elements must be multiples of; 1 for blocks, which are read byte by byte.
[[nodiscard]] std::size_t dtype_alignment(DType dtype) noexcept;
/// The name that safetensors or GGUF uses: "F32", "BF16", "Q8_0", ...
[[nodiscard]] std::string_view dtype_name(DType dtype) noexcept;
/// The type that safetensors calls `name` (blocks have no place there); nothing for an unknown name.
[[nodiscard]] std::optional<DType> dtype_from_safetensors(std::string_view name) noexcept;
/// Whether weights may have it.
[[nodiscard]] inline bool is_weight_type(DType dtype) noexcept {
  return static_cast<std::size_t>(dtype) < kWeightTypes;
}

}  // namespace qgen
