#pragma once

#include <memory>

#include "kernels/kernel_test.h"

namespace qgen::test {

/// Values [rows, cols], row by row, with memory after the last that must not be touched.
class Matrix {
 public:
  Matrix(std::int64_t row_count, std::int64_t col_count)
      : rows(row_count),
        cols(col_count),
        memory_(std::make_unique<GuardedBytes>(static_cast<std::size_t>(rows * cols) * sizeof(float))) {}
  Matrix(std::int64_t row_count, std::int64_t col_count, std::uint32_t seed) : Matrix(row_count, col_count) {
    RandomFloats random(seed);
    fill([&] { return random.next(); });
  }

  void fill(const auto& next) {
    for (std::int64_t i = 0; i < rows * cols; ++i) memory_->floats()[i] = next();
  }
  [[nodiscard]] float* row(std::int64_t r) const { return memory_->floats() + r * cols; }

  std::int64_t rows, cols;

 private:
  std::unique_ptr<GuardedBytes> memory_;
};

/// A matrix as panels, exactly as large as promised.
class Panels {
 public:
  Panels(const PackedKernels& kernels, const Matrix& w)
      : rows(w.rows),
        cols(w.cols),
        kernels_(&kernels),
        memory_(std::make_unique<GuardedBytes>(bytes_before(w.rows + kernels.panel_rows - 1))) {
    for (std::int64_t r = 0; r < rows; r += kernels.panel_rows) {
      kernels.pack(w.row(r), w.cols, std::min(kernels.panel_rows, rows - r), cols, panel(r));
    }
  }

  /// Where the panel with row r begins.
  [[nodiscard]] std::byte* panel(std::int64_t r) const { return memory_->data() + bytes_before(r); }
  [[nodiscard]] const PackedKernels& kernels() const { return *kernels_; }

  std::int64_t rows, cols;

 private:
  [[nodiscard]] std::size_t bytes_before(std::int64_t r) const {
    return static_cast<std::size_t>(r / kernels_->panel_rows) * kernels_->panel_bytes(cols);
  }

  const PackedKernels* kernels_;
  std::unique_ptr<GuardedBytes> memory_;
};

struct Rows {
  std::int64_t begin, end;
};

/// Prepares tokens [first, first + tokens) of X and multiplies them by rows of W, which begin at a panel:
/// Y[tokens, rows]. All memory has exactly the promised size.
inline std::vector<float> multiply(const MatmulKernel& kernel, const Panels& w, Rows rows, const Matrix& x,
                                   std::int64_t first, std::int64_t tokens) {
  return multiply_guarded(kernel, w.panel(rows.begin), rows.end - rows.begin, w.cols, x.row(first), x.cols,
                          tokens);
}

inline std::vector<float> multiply(const MatmulKernel& kernel, const Panels& w, const Matrix& x) {
  return multiply(kernel, w, {0, w.rows}, x, 0, x.rows);
}

/// 127 times the weights as they were rounded (within some units of a float), by multiplication with inputs
/// that are 32639 in one column, whose scale is 1.
inline Matrix rounded_times_127(const Panels& w) {
  Matrix rounded(w.rows, w.cols), x(1, w.cols);
  for (std::int64_t c = 0; c < w.cols; ++c) {
    x.fill([] { return 0.0f; });
    x.row(0)[c] = 32639.0f;
    const auto y = multiply(w.kernels().few, w, x);
    for (std::int64_t r = 0; r < w.rows; ++r) {
      rounded.row(r)[c] = static_cast<float>(static_cast<double>(y[static_cast<std::size_t>(r)]) / 257);
    }
  }
  return rounded;
}

inline constexpr PackedType kIntegerTypes[] = {PackedType::q8, PackedType::q4};

inline const char* integer_type_name(PackedType type) {
  return type == PackedType::q8 ? "q8" : "q4";
}

}  // namespace qgen::test
