#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "cli/quantize/source.h"

namespace qgen::cli {

/// Which types tensors get.
struct Recipe {
  DType type = DType::q8_0;
  std::optional<DType> head;
};

/// The type that an option's word names: f32, f16, bf16, q8_0, q4_0, q4_k, q6_k.
[[nodiscard]] std::vector<std::string_view> type_words();
[[nodiscard]] DType type_named(std::string_view word);

/// For each tensor: vectors, biases and the router of experts are F32; the output matrix (the embedding where
/// it serves as one) is the recipe's head, by default Q6_K beside four-bit types; the rest is the recipe's
/// type. Rows that are no whole blocks become Q8_0, or F16 where they are no whole blocks of that either.
[[nodiscard]] std::vector<DType> types_of(const std::vector<SourceTensor>& tensors, const Recipe& recipe);

/// What the type is called as a whole: general.file_type.
[[nodiscard]] std::uint32_t file_type_of(DType type);

}  // namespace qgen::cli
