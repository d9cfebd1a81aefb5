#include "qgen/tensor/dtype.h"

#include <array>

namespace qgen {
namespace {

struct Row {
  std::string_view name;
  std::size_t size;
};

constexpr std::array<Row, 13> kRows{{{"F32", 4},
                                     {"F16", 2},
                                     {"BF16", 2},
                                     {"I8", 1},
                                     {"U8", 1},
                                     {"I16", 2},
                                     {"U16", 2},
                                     {"I32", 4},
                                     {"U32", 4},
                                     {"I64", 8},
                                     {"U64", 8},
                                     {"F64", 8},
                                     {"BOOL", 1}}};

}  // namespace

std::size_t dtype_size(DType dtype) noexcept {
  return kRows[static_cast<std::size_t>(dtype)].size;
}

std::string_view dtype_name(DType dtype) noexcept {
  return kRows[static_cast<std::size_t>(dtype)].name;
}

std::optional<DType> dtype_from_name(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kRows.size(); ++i) {
    if (kRows[i].name == name) return static_cast<DType>(i);
  }
  return std::nullopt;
}

}  // namespace qgen
