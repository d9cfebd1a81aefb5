#pragma once

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/kernels/kernel_table.h"
#include "qgen/tensor/convert.h"
#include "qgen/tensor/tensor_view.h"

namespace qgen::test {

/// Half the distance of neighbouring floats, relative: the error of one rounded operation.
inline constexpr double kUnit = 0x1p-24;

/// Runs once for every table of the build; tables that this processor cannot run are skipped by name.
class KernelTest : public testing::TestWithParam<std::string_view> {
 protected:
  void SetUp() override {
    const auto available = available_kernels();
    const bool usable =
        std::ranges::any_of(available, [](const KernelTable* table) { return table->name == GetParam(); });
    if (!usable) GTEST_SKIP() << "this processor cannot run the kernels " << GetParam();
    table_ = &kernels_named(GetParam());
    ASSERT_EQ(table_->name, GetParam());
  }
  [[nodiscard]] const KernelTable& table() const { return *table_; }
  /// Floats in one vector of the table, which lengths are tested around and rounding errors depend on.
  [[nodiscard]] std::int64_t lanes() const {
    return table_->packed[static_cast<std::size_t>(PackedType::f32)].panel_rows;
  }

 private:
  const KernelTable* table_ = nullptr;
};

inline std::string table_name(const testing::TestParamInfo<std::string_view>& info) {
  return std::string(info.param);
}

#define QGEN_FOR_ALL_TABLES(suite) \
  INSTANTIATE_TEST_SUITE_P(Tables, suite, testing::ValuesIn(qgen::built_kernels()), qgen::test::table_name)

/// Memory between two pages that must not be touched. It ends at the upper one, or begins at the lower one.
class GuardedBytes {
 public:
  enum class Edge { upper, lower };

  explicit GuardedBytes(std::size_t bytes, Edge edge = Edge::upper) {
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const std::size_t inner = (bytes + page - 1) / page * page;
    mapped_ = inner + 2 * page;
    void* memory = mmap(nullptr, mapped_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) std::abort();
    base_ = static_cast<std::byte*>(memory);
    if (inner != 0 && mprotect(base_ + page, inner, PROT_READ | PROT_WRITE) != 0) std::abort();
    data_ = edge == Edge::lower ? base_ + page : base_ + page + inner - bytes;
  }
  GuardedBytes(const GuardedBytes&) = delete;
  GuardedBytes& operator=(const GuardedBytes&) = delete;
  ~GuardedBytes() { munmap(base_, mapped_); }

  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] float* floats() const { return reinterpret_cast<float*>(data_); }

 private:
  std::byte* base_ = nullptr;
  std::byte* data_ = nullptr;
  std::size_t mapped_ = 0;
};

/// Reproducible data: mostly of size 1, now and then far larger or far smaller.
class RandomFloats {
 public:
  explicit RandomFloats(std::uint32_t seed) : generator_(seed) {}

  float next() {
    const float value = normal_(generator_);
    switch (generator_() % 64) {
      case 0:
        return value * 100.0f;
      case 1:
        return value * 0x1p-12f;
      case 2:
        return 0.0f;
      default:
        return value;
    }
  }
  std::vector<float> vector(std::int64_t n) {
    std::vector<float> values(static_cast<std::size_t>(n));
    for (float& value : values) value = next();
    return values;
  }

 private:
  std::mt19937 generator_;
  std::normal_distribution<float> normal_;
};

/// The value that storing as `dtype` leaves of it.
inline float rounded(float value, DType dtype) {
  if (dtype == DType::f16) return f16_to_f32(f32_to_f16(value));
  if (dtype == DType::bf16) return bf16_to_f32(f32_to_bf16(value));
  return value;
}

inline void write_element(std::byte* to, float value, DType dtype) {
  if (dtype == DType::f32) {
    std::memcpy(to, &value, sizeof value);
  } else {
    const std::uint16_t bits = dtype == DType::f16 ? f32_to_f16(value) : f32_to_bf16(value);
    std::memcpy(to, &bits, sizeof bits);
  }
}

inline std::int64_t element_bytes(DType dtype) {
  return block_bytes(dtype);
}

inline constexpr DType kWeightDTypes[] = {DType::f32, DType::f16, DType::bf16};

/// Prepares X[tokens, cols], tokens `x_stride` floats apart, and multiplies it by `rows` rows of W, which
/// begin with a panel: Y[tokens, rows]. All memory has exactly the promised size.
inline std::vector<float> multiply_guarded(const MatmulKernel& kernel, const std::byte* panel,
                                           std::int64_t rows, std::int64_t cols, const float* x,
                                           std::int64_t x_stride, std::int64_t tokens) {
  const GuardedBytes input(kernel.input_bytes(tokens, cols));
  const GuardedBytes scratch(kernel.scratch_bytes(cols));
  for (std::int64_t t = 0; t < tokens; t += kernel.token_block) {
    kernel.prepare(x, x_stride, t, std::min(t + kernel.token_block, tokens), cols, input.data());
  }
  const GuardedBytes y(static_cast<std::size_t>(tokens * rows) * sizeof(float));
  std::fill_n(y.floats(), tokens * rows, 12345.0f);
  kernel.multiply({panel, rows, cols, input.data(), tokens, y.floats(), rows, scratch.data()});
  return {y.floats(), y.floats() + tokens * rows};
}

/// Checks that multiply(y, stride) writes all of Y[tokens, rows] and nothing between or behind its rows.
void expect_writes_only(std::int64_t tokens, std::int64_t rows, const auto& multiply) {
  const std::int64_t stride = rows + 9;
  std::vector<float> y(static_cast<std::size_t>(stride * (tokens + 1)), 777.0f);
  multiply(y.data(), stride);
  for (std::size_t i = 0; i < y.size(); ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const bool inside = at % stride < rows && at / stride < tokens;
    ASSERT_EQ(y[i] == 777.0f, !inside) << "row " << at % stride << ", token " << at / stride;
  }
}

inline bool same_bits(const float* a, const float* b, std::int64_t n) {
  return n == 0 || std::memcmp(a, b, static_cast<std::size_t>(n) * sizeof(float)) == 0;
}

}  // namespace qgen::test
