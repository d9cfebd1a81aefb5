#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace qgen {

/// Element types of stored tensors. The order is that of the kernel tables' slots.
enum class DType : std::uint8_t { f32, f16, bf16, i8, u8, i16, u16, i32, u32, i64, u64, f64, boolean };

/// How many leading DTypes are weight types, that is, have kernels: f32, f16, bf16.
inline constexpr std::size_t kWeightTypes = 3;

/// Bytes of one element.
[[nodiscard]] std::size_t dtype_size(DType dtype) noexcept;
/// The name that safetensors uses: "F32", "BF16", ...
[[nodiscard]] std::string_view dtype_name(DType dtype) noexcept;
/// The inverse of dtype_name; nothing for an unknown name.
[[nodiscard]] std::optional<DType> dtype_from_name(std::string_view name) noexcept;
/// Whether kernels can multiply by it.
[[nodiscard]] inline bool is_weight_type(DType dtype) noexcept {
  return static_cast<std::size_t>(dtype) < kWeightTypes;
}

}  // namespace qgen
