#pragma once

#include <memory>
#include <ostream>
#include <utility>

#include "kernels/kernel_test.h"
#include "qgen/tensor/block_format.h"

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

/// Rows of random blocks as a file has them. Any bits are values; only scales and minima are kept finite: of
/// either sign, of several sizes, subnormal or zero.
class Blocks {
 public:
  Blocks(DType type, std::int64_t row_count, std::int64_t col_count, std::uint32_t seed)
      : dtype(type),
        rows(row_count),
        cols(col_count),
        // A block is read byte by byte.
        stride(row_bytes(type, col_count) + 3),
        memory_(std::make_unique<GuardedBytes>(static_cast<std::size_t>(rows * stride - 3))) {
    std::mt19937 random(seed);
    for (std::int64_t i = 0; i < rows * stride - 3; ++i) {
      memory_->data()[i] = static_cast<std::byte>(random());
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; c += block_elements(dtype)) {
        for (const std::size_t at : f16_offsets(dtype)) set_f16(r, c, at, random_f16(random));
      }
    }
  }

  /// Where the f16 numbers of a block are.
  static std::vector<std::size_t> f16_offsets(DType dtype) {
    if (dtype == DType::q4_1 || dtype == DType::q4_k) return {0, 2};
    if (dtype == DType::q6_k) return {208};
    if (dtype == DType::q3_k) return {108};
    return {0};
  }

  [[nodiscard]] std::byte* block(std::int64_t r, std::int64_t c) const {
    return memory_->data() + r * stride + row_bytes(dtype, c);
  }
  /// Sets one of the f16 numbers of the block whose first column is c.
  void set_f16(std::int64_t r, std::int64_t c, std::size_t offset, std::uint16_t bits) const {
    std::memcpy(block(r, c) + offset, &bits, sizeof bits);
  }
  /// Sets one of the f16 numbers of every block.
  void set_all_f16(std::size_t offset, std::uint16_t bits) const {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; c += block_elements(dtype)) set_f16(r, c, offset, bits);
    }
  }
  /// The values, as the format defines them.
  [[nodiscard]] Matrix values() const {
    Matrix values(rows, cols);
    for (std::int64_t r = 0; r < rows; ++r) dequantizer(dtype)(block(r, 0), cols, values.row(r));
    return values;
  }

  DType dtype;
  std::int64_t rows, cols, stride;

 private:
  static std::uint16_t random_f16(std::mt19937& random) {
    const auto sign = static_cast<std::uint16_t>(random() % 2 << 15);
    if (random() % 32 == 0) return sign;
    if (random() % 32 == 0) return static_cast<std::uint16_t>(sign | random() % 1024);
    // 2^-8 to 2^-2.
    return static_cast<std::uint16_t>(sign | (7 + random() % 6) << 10 | random() % 1024);
  }

  std::unique_ptr<GuardedBytes> memory_;
};

/// A matrix as panels, exactly as large as promised.
class Panels {
 public:
  Panels(const PackedKernels& kernels, const Matrix& w) : Panels(kernels, w.rows, w.cols) {
    for (std::int64_t r = 0; r < rows; r += kernels.panel_rows) {
      kernels.pack(w.row(r), w.cols, std::min(kernels.panel_rows, rows - r), cols, panel(r));
    }
  }
  Panels(const KernelTable& table, const Blocks& w)
      : Panels(table.packed[static_cast<std::size_t>(packed_type_of(w.dtype))], w.rows, w.cols) {
    for (std::int64_t r = 0; r < rows; r += kernels_->panel_rows) {
      table.pack_blocks[static_cast<std::size_t>(w.dtype)](
          w.block(r, 0), w.stride, std::min(kernels_->panel_rows, rows - r), cols, panel(r));
    }
  }

  /// Where the panel with row r begins.
  [[nodiscard]] std::byte* panel(std::int64_t r) const { return memory_->data() + bytes_before(r); }
  [[nodiscard]] const PackedKernels& kernels() const { return *kernels_; }

  std::int64_t rows, cols;

 private:
  Panels(const PackedKernels& kernels, std::int64_t row_count, std::int64_t col_count)
      : rows(row_count),
        cols(col_count),
        kernels_(&kernels),
        memory_(std::make_unique<GuardedBytes>(bytes_before(rows + kernels.panel_rows - 1))) {}

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

/// A group times the Hadamard matrix of its size, by the fast Walsh-Hadamard transform.
inline void rotate(std::span<float> group) {
  for (std::size_t step = 1; step < group.size(); step *= 2) {
    for (std::size_t i = 0; i < group.size(); ++i) {
      if ((i & step) != 0) continue;
      const float a = group[i], b = group[i + step];
      group[i] = a + b;
      group[i + step] = a - b;
    }
  }
}

/// Every group of every row rotated; as many columns as whole groups have.
inline Matrix rotated(const Matrix& m, float factor) {
  Matrix wide(m.rows, (m.cols + kGroup - 1) / kGroup * kGroup);
  wide.fill([] { return 0.0f; });
  for (std::int64_t r = 0; r < m.rows; ++r) {
    for (std::int64_t c = 0; c < m.cols; ++c) wide.row(r)[c] = factor * m.row(r)[c];
    for (std::int64_t c = 0; c < wide.cols; c += kGroup) {
      rotate({wide.row(r) + c, static_cast<std::size_t>(kGroup)});
    }
  }
  return wide;
}

/// 127 times the weights as they were rounded (within some units of a float), by multiplication with inputs
/// that are 16319 in one column, whose scale is 1.
inline Matrix rounded_times_127(const Panels& w) {
  Matrix rounded(w.rows, w.cols), x(1, w.cols);
  for (std::int64_t c = 0; c < w.cols; ++c) {
    x.fill([] { return 0.0f; });
    x.row(0)[c] = 16319.0f;
    const auto y = multiply(w.kernels().few, w, x);
    for (std::int64_t r = 0; r < w.rows; ++r)
      rounded.row(r)[c] = y[static_cast<std::size_t>(r)] * (127.0f / 16319.0f);
  }
  return rounded;
}

/// What panels of integers are made of: floats, rounded, or blocks.
struct IntegerSource {
  const char* name;
  PackedType type;
  DType dtype;

  [[nodiscard]] bool floats() const { return dtype == DType::f32; }
  /// The next number of columns that whole blocks have.
  [[nodiscard]] std::int64_t whole(std::int64_t cols) const {
    const std::int64_t block = block_elements(dtype);
    return (cols + block - 1) / block * block;
  }
};

inline constexpr IntegerSource kRoundedSources[] = {{"q8", PackedType::q8, DType::f32},
                                                    {"q4", PackedType::q4, DType::f32},
                                                    {"q8_rotated", PackedType::q8_rotated, DType::f32}};
inline constexpr IntegerSource kIntegerSources[] = {{"q8", PackedType::q8, DType::f32},
                                                    {"q4", PackedType::q4, DType::f32},
                                                    {"q8_rotated", PackedType::q8_rotated, DType::f32},
                                                    {"q8_0", PackedType::q8, DType::q8_0},
                                                    {"q5_0", PackedType::q8, DType::q5_0},
                                                    {"iq4_nl", PackedType::q8, DType::iq4_nl},
                                                    {"q4_0", PackedType::q4, DType::q4_0},
                                                    {"q4_1", PackedType::q4_1, DType::q4_1},
                                                    {"q4_k", PackedType::q4_k, DType::q4_k},
                                                    {"q3_k", PackedType::q6_k, DType::q3_k},
                                                    {"q6_k", PackedType::q6_k, DType::q6_k}};

inline void PrintTo(const IntegerSource& source, std::ostream* out) {
  *out << source.name;
}

/// Weights in panels together with their values, of rotated ones those of the rotated groups.
struct IntegerWeights {
  IntegerWeights(const KernelTable& table, const IntegerSource& source, std::int64_t rows, std::int64_t cols,
                 std::uint32_t seed)
      : IntegerWeights(source.floats() ? rounded(table, source, rows, cols, seed)
                                       : IntegerWeights(table, Blocks(source.dtype, rows, cols, seed))) {}
  IntegerWeights(const KernelTable& table, const Blocks& blocks)
      : panels(table, blocks), values(blocks.values()), magnitudes(blocks.values()) {
    // Without minima the format gives the scaled integers.
    if (Blocks::f16_offsets(blocks.dtype).size() == 2) blocks.set_all_f16(2, 0);
    const Matrix products = blocks.values();
    for (std::int64_t i = 0; i < values.rows * values.cols; ++i) {
      const float product = products.row(0)[i];
      magnitudes.row(0)[i] = std::abs(product) + std::abs(values.row(0)[i] - product);
    }
  }

  IntegerWeights(Panels p, Matrix v, Matrix m, bool rotated_groups)
      : panels(std::move(p)), values(std::move(v)), magnitudes(std::move(m)), is_rotated(rotated_groups) {}

  /// What values are multiplied by where panels are multiplied by X.
  [[nodiscard]] Matrix input_of(const Matrix& x) const {
    if (is_rotated) return rotated(x, 1.0f / kGroup);
    Matrix same(x.rows, x.cols);
    std::copy_n(x.row(0), x.rows * x.cols, same.row(0));
    return same;
  }

  Panels panels;
  Matrix values;
  Matrix magnitudes;  ///< of a scaled integer and its minimum together
  bool is_rotated = false;

 private:
  static IntegerWeights rounded(const KernelTable& table, const IntegerSource& source, std::int64_t rows,
                                std::int64_t cols, std::uint32_t seed) {
    const Matrix floats(rows, cols, seed);
    Panels packed(table.packed[static_cast<std::size_t>(source.type)], floats);
    const bool rotated_groups = source.type == PackedType::q8_rotated;
    Matrix signed_values = rounded_times_127(
        rotated_groups ? Panels(table.packed[static_cast<std::size_t>(PackedType::q8)], rotated(floats, 1))
                       : Panels(packed.kernels(), floats));
    Matrix unsigned_values(rows, signed_values.cols);
    for (std::int64_t i = 0; i < rows * signed_values.cols; ++i) {
      signed_values.row(0)[i] /= 127;
      unsigned_values.row(0)[i] = std::abs(signed_values.row(0)[i]);
    }
    return {std::move(packed), std::move(signed_values), std::move(unsigned_values), rotated_groups};
  }
};

inline std::vector<float> multiply(const MatmulKernel& kernel, const IntegerWeights& w, const Matrix& x) {
  return multiply(kernel, w.panels, x);
}

}  // namespace qgen::test
