#pragma once

#include <cstddef>
#include <cstdint>

#include "qgen/tensor/dtype.h"

namespace qgen {

/// A row-major matrix (or, with rows == 1, a vector) in memory that somebody else owns.
struct TensorView {
  const std::byte* data = nullptr;
  DType dtype = DType::f32;
  std::int64_t rows = 0;
  std::int64_t cols = 0;
  std::int64_t stride = 0;  ///< bytes from one row to the next

  [[nodiscard]] const std::byte* row(std::int64_t r) const noexcept { return data + r * stride; }
  [[nodiscard]] std::int64_t bytes() const noexcept { return rows * stride; }
};

}  // namespace qgen
