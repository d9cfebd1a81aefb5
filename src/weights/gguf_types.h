#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "qgen/tensor/dtype.h"

namespace qgen {

/// The element type that GGUF numbers so; nothing for those that cannot be read.
std::optional<DType> dtype_from_gguf(std::uint32_t number) noexcept;
/// GGUF's number for a type; nothing for those that it does not have (bool and unsigned integers).
std::optional<std::uint32_t> gguf_number_of(DType dtype) noexcept;
/// "IQ2_XXS (16)", for messages.
std::string gguf_type_text(std::uint32_t number);

}  // namespace qgen
