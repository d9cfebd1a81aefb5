#include "cli/quantize/recipe.h"

#include <algorithm>
#include <array>

namespace qgen::cli {
namespace {

struct Row {
  std::string_view word;
  DType type;
  std::uint32_t file_type;  // as llama.cpp numbers them
};

constexpr std::array<Row, 7> kRows{{{"q8_0", DType::q8_0, 7},
                                    {"q4_0", DType::q4_0, 2},
                                    {"q4_k", DType::q4_k, 14},
                                    {"q6_k", DType::q6_k, 18},
                                    {"bf16", DType::bf16, 32},
                                    {"f16", DType::f16, 1},
                                    {"f32", DType::f32, 0}}};

bool is_small(const SourceTensor& tensor) {
  return tensor.shape.size() < 2 || tensor.name.ends_with(".bias") ||
         tensor.name.ends_with(".ffn_gate_inp.weight");
}

DType fitting(DType wanted, std::int64_t cols) {
  if (cols % block_elements(wanted) == 0) return wanted;
  return cols % block_elements(DType::q8_0) == 0 ? DType::q8_0 : DType::f16;
}

}  // namespace

std::vector<std::string_view> type_words() {
  std::vector<std::string_view> words;
  for (const Row& row : kRows) words.push_back(row.word);
  return words;
}

DType type_named(std::string_view word) {
  return std::ranges::find(kRows, word, &Row::word)->type;
}

std::uint32_t file_type_of(DType type) {
  return std::ranges::find(kRows, type, &Row::type)->file_type;
}

std::vector<DType> types_of(const std::vector<SourceTensor>& tensors, const Recipe& recipe) {
  const bool four_bits = recipe.type == DType::q4_0 || recipe.type == DType::q4_k;
  const DType head = recipe.head.value_or(four_bits ? DType::q6_k : recipe.type);
  const bool has_output = std::ranges::find(tensors, "output.weight", &SourceTensor::name) != tensors.end();
  const std::string_view head_name = has_output ? "output.weight" : "token_embd.weight";
  std::vector<DType> types;
  for (const SourceTensor& tensor : tensors) {
    const DType wanted = tensor.name == head_name ? head : recipe.type;
    types.push_back(is_small(tensor) ? DType::f32 : fitting(wanted, tensor.cols()));
  }
  return types;
}

}  // namespace qgen::cli
