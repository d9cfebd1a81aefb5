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
    return table_->packed[static_cast<std::size_t>(PackedType::q8)].panel_rows;
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
  return static_cast<std::int64_t>(dtype_size(dtype));
}

inline constexpr DType kWeightDTypes[] = {DType::f32, DType::f16, DType::bf16};

inline bool same_bits(const float* a, const float* b, std::int64_t n) {
  return n == 0 || std::memcmp(a, b, static_cast<std::size_t>(n) * sizeof(float)) == 0;
}

}  // namespace qgen::test
