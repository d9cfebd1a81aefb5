#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "qgen/tensor/dtype.h"

namespace qgen {

/// How a matrix is held for multiplication: as floats of some width, or as integers in groups of kGroup
/// columns with a scale.
///   q8, q4   -128..127 and -8..7 times an f16 scale
///   q8_rotated   as q8, of groups times the Hadamard matrix of order kGroup, as inputs are, over kGroup;
///                users call it q8, too
///   q4_1     0..15 times an f16 scale, plus an f16 minimum
///   q4_k     0..15 times a scale, minus a minimum; both are integers times f16 factors of 256 columns
///   q6_k     -32..31 times a scale for 16 columns, an integer times an f16 factor of 256 columns
enum class PackedType : std::uint8_t { f32, f16, bf16, q8, q4, q4_1, q4_k, q6_k, q8_rotated };
inline constexpr std::size_t kPackedTypes = 9;
/// How many trailing PackedTypes hold integers.
inline constexpr std::size_t kIntegerTypes = 6;
/// Columns of a row that share a scale, for weights and for the inputs multiplied by them.
inline constexpr std::int64_t kGroup = 32;

/// The type for weights stored as `dtype`, a weight type. It holds their very values but for q5_1, q2_k, q5_k
/// and iq4_xs, which are rounded to q8: their scales and minima fit none.
[[nodiscard]] PackedType packed_type_of(DType dtype) noexcept;
[[nodiscard]] std::string_view packed_type_name(PackedType type) noexcept;
/// Bits that a weight takes, scales included.
[[nodiscard]] double packed_bits(PackedType type) noexcept;

}  // namespace qgen
