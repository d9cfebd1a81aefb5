#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "kernels/tile_config.h"

namespace qgen::test {

/// The tile registers of AMX, instruction by instruction as the processor's manual describes them. What would
/// fault there throws here.
class TileModel {
 public:
  void configure(const kernels::TileConfig& config) {
    check(config.palette == 1 && config.start_row == 0, "palette or start row");
    for (const std::uint8_t byte : config.reserved) check(byte == 0, "reserved byte");
    for (int i = 0; i < 16; ++i) {
      const bool exists = i < kTiles;
      check(config.row_bytes[i] <= (exists ? kRowBytes : 0) && config.rows[i] <= (exists ? kRows : 0),
            "shape");
      check((config.row_bytes[i] == 0) == (config.rows[i] == 0), "half of a shape");
    }
    config_ = config;
    configured_ = true;
    tiles_ = {};
  }
  void release() {
    configured_ = false;
    tiles_ = {};
  }
  [[nodiscard]] bool configured() const { return configured_; }

  template <int T>
  void zero() {
    check_tile(T);
    tiles_[T] = {};
  }

  template <int T>
  void load(const void* from, std::int64_t stride) {
    check_tile(T);
    tiles_[T] = {};
    for (int r = 0; r < config_.rows[T]; ++r) {
      std::memcpy(row(T, r), static_cast<const std::byte*>(from) + r * stride, config_.row_bytes[T]);
    }
  }

  template <int T>
  void store(void* to, std::int64_t stride) {
    check_tile(T);
    for (int r = 0; r < config_.rows[T]; ++r) {
      std::memcpy(static_cast<std::byte*>(to) + r * stride, row(T, r), config_.row_bytes[T]);
    }
  }

  /// TDPBF16PS: sums of the even and of the odd columns in f32, begun at zero, then their sum added to C.
  template <int C, int A, int B>
  void multiply_add() {
    static_assert(C != A && A != B && B != C, "three different tiles");
    for (const int tile : {C, A, B}) check_tile(tile);
    check(config_.rows[A] == config_.rows[C] && config_.row_bytes[B] == config_.row_bytes[C] &&
              config_.row_bytes[A] == 4 * config_.rows[B],
          "shapes of a product");
    const Numbers a = numbers(A), b = numbers(B);
    for (int m = 0; m < config_.rows[C]; ++m) {
      for (int n = 0; n < config_.row_bytes[C] / 4; ++n) {
        const float* pairs_a = a.data() + m * kRowNumbers;
        const float* pairs_b = b.data() + 2 * n;
        float sums[2] = {0, 0};
        for (int k = 0; k < config_.row_bytes[A] / 4; ++k, pairs_a += 2, pairs_b += kRowNumbers) {
          sums[0] = flushed(multiply_add(pairs_a[0], pairs_b[0], sums[0]));
          sums[1] = flushed(multiply_add(pairs_a[1], pairs_b[1], sums[1]));
        }
        float c = 0;
        std::memcpy(&c, row(C, m) + 4 * n, sizeof c);
        c = flushed(flushed(c) + flushed(sums[0] + sums[1]));
        std::memcpy(row(C, m) + 4 * n, &c, sizeof c);
      }
    }
  }

 private:
  static constexpr int kTiles = 8, kRows = 16, kRowBytes = 64, kRowNumbers = kRowBytes / 2;
  using Numbers = std::array<float, static_cast<std::size_t>(kRows* kRowNumbers)>;

  static void check(bool right, const char* what) {
    if (!right) throw std::logic_error(what);
  }
  void check_tile(int tile) const {
    check(configured_, "no configuration");
    check(tile < kTiles && config_.rows[tile] != 0, "no such tile");
  }
  std::byte* row(int tile, int r) {
    return &tiles_[static_cast<std::size_t>(tile)][static_cast<std::size_t>(r * kRowBytes)];
  }

  /// Subnormals are zeros.
  static float flushed(float x) {
    return std::abs(x) < std::numeric_limits<float>::min() ? std::copysign(0.0f, x) : x;
  }
  /// a b + c, rounded once. Where the product is a float itself, that is the same as rounding both times, and
  /// much faster than std::fma on processors without such an instruction.
  static float multiply_add(float a, float b, float c) {
    const float product = a * b;
    const bool exact = std::isnormal(product) || a == 0 || b == 0;
    return exact ? product + c : std::fma(a, b, c);
  }
  /// All bf16 numbers of a tile.
  [[nodiscard]] Numbers numbers(int tile) const {
    Numbers all{};
    for (std::size_t i = 0; i < all.size(); ++i) {
      std::uint16_t half = 0;
      std::memcpy(&half, tiles_[static_cast<std::size_t>(tile)].data() + 2 * i, sizeof half);
      all[i] = flushed(std::bit_cast<float>(std::uint32_t{half} << 16));
    }
    return all;
  }

  kernels::TileConfig config_;
  bool configured_ = false;
  std::array<std::array<std::byte, kRows * kRowBytes>, kTiles> tiles_{};
};

}  // namespace qgen::test
