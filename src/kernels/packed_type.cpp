#include "qgen/kernels/packed_type.h"

#include <array>

namespace qgen {

PackedType packed_type_of(DType dtype) noexcept {
  switch (dtype) {
    case DType::f16:
      return PackedType::f16;
    case DType::bf16:
      return PackedType::bf16;
    case DType::q4_0:
      return PackedType::q4;
    case DType::q4_1:
      return PackedType::q4_1;
    case DType::q4_k:
      return PackedType::q4_k;
    case DType::q3_k:
    case DType::q6_k:
      return PackedType::q6_k;
    case DType::q8_0:
    case DType::q5_0:
    case DType::q5_1:
    case DType::q2_k:
    case DType::q5_k:
    case DType::iq4_nl:
    case DType::iq4_xs:
      return PackedType::q8;
    default:
      return PackedType::f32;
  }
}

std::string_view packed_type_name(PackedType type) noexcept {
  constexpr std::array<std::string_view, kPackedTypes> names{"f32",  "f16",  "bf16", "q8", "q4",
                                                             "q4_1", "q4_k", "q6_k", "q8"};
  return names[static_cast<std::size_t>(type)];
}

double packed_bits(PackedType type) noexcept {
  constexpr std::array<double, kPackedTypes> bits{32, 16, 16, 8.5, 4.5, 5, 4.625, 6.5625, 8.5};
  return bits[static_cast<std::size_t>(type)];
}

}  // namespace qgen
