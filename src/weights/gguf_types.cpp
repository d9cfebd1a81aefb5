#include "weights/gguf_types.h"

#include <algorithm>
#include <array>
#include <string_view>

namespace qgen {
namespace {

struct Readable {
  std::uint32_t number;
  DType dtype;
};

constexpr std::array<Readable, 20> kReadable{
    {{0, DType::f32},   {1, DType::f16},   {2, DType::q4_0},    {3, DType::q4_1},    {6, DType::q5_0},
     {7, DType::q5_1},  {8, DType::q8_0},  {10, DType::q2_k},   {11, DType::q3_k},   {12, DType::q4_k},
     {13, DType::q5_k}, {14, DType::q6_k}, {20, DType::iq4_nl}, {23, DType::iq4_xs}, {24, DType::i8},
     {25, DType::i16},  {26, DType::i32},  {27, DType::i64},    {28, DType::f64},    {30, DType::bf16}}};

struct Other {
  std::uint32_t number;
  std::string_view name;
};

constexpr std::array<Other, 15> kOthers{{{9, "Q8_1"},
                                         {15, "Q8_K"},
                                         {16, "IQ2_XXS"},
                                         {17, "IQ2_XS"},
                                         {18, "IQ3_XXS"},
                                         {19, "IQ1_S"},
                                         {21, "IQ3_S"},
                                         {22, "IQ2_S"},
                                         {29, "IQ1_M"},
                                         {34, "TQ1_0"},
                                         {35, "TQ2_0"},
                                         {39, "MXFP4"},
                                         {40, "NVFP4"},
                                         {41, "Q1_0"},
                                         {42, "Q2_0"}}};

}  // namespace

std::optional<DType> dtype_from_gguf(std::uint32_t number) noexcept {
  const auto found = std::ranges::find(kReadable, number, &Readable::number);
  return found == kReadable.end() ? std::nullopt : std::optional(found->dtype);
}

std::optional<std::uint32_t> gguf_number_of(DType dtype) noexcept {
  const auto found = std::ranges::find(kReadable, dtype, &Readable::dtype);
  return found == kReadable.end() ? std::nullopt : std::optional(found->number);
}

std::string gguf_type_text(std::uint32_t number) {
  const auto other = std::ranges::find(kOthers, number, &Other::number);
  const std::optional<DType> known = dtype_from_gguf(number);
  const std::string_view name = known ? dtype_name(*known) : other == kOthers.end() ? "" : other->name;
  if (name.empty()) return "number " + std::to_string(number);
  return std::string(name) + " (" + std::to_string(number) + ")";
}

}  // namespace qgen
