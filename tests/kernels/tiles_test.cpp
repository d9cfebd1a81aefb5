// The loop over tiles of AMX, on a model of the tile registers: it runs on every machine. Where the processor
// has them, panel_float_test.cpp runs the same loop on the real ones.
#include "kernels/generic/includes.h"
#include "kernels/kernel_test.h"
#include "kernels/tile_model.h"

namespace qgen::kernels::tiles {
namespace {
#include "kernels/vocabulary/portable.inl"
//
// clang-format off
#include "kernels/generic/elements.inl"
#include "kernels/generic/panels.inl"
#include "kernels/generic/group_rotation.inl"
#include "kernels/generic/tiles.inl"
// clang-format on
}  // namespace
}  // namespace qgen::kernels::tiles

namespace qgen::test {
namespace {

using kernels::tiles::tile_input_bytes;
using kernels::tiles::tile_multiply;
using kernels::tiles::tile_prepare;
using kernels::tiles::tile_probe;
using kernels::tiles::TileRounding;
using kernels::tiles::tiles_are_right;

constexpr std::int64_t kPanel = 16;

/// Panels of 16 rows in the order of B tiles, [32 columns][pair][row][2], up to memory that must not be
/// touched; and the values that they hold.
struct TileWeights {
  TileWeights(std::int64_t row_count, std::int64_t col_count, std::uint32_t seed)
      : rows(row_count),
        cols(col_count),
        padded((cols + 31) / 32 * 32),
        values(RandomFloats(seed).vector(rows * cols)),
        panels(static_cast<std::size_t>((rows + kPanel - 1) / kPanel * kPanel * padded * 2)) {
    for (float& value : values) value = rounded(value, DType::bf16);
    std::fill_n(panels.data(), (rows + kPanel - 1) / kPanel * kPanel * padded * 2, std::byte{});
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) set(r, c, values[static_cast<std::size_t>(r * cols + c)]);
    }
  }
  void set(std::int64_t r, std::int64_t c, float value) {
    values[static_cast<std::size_t>(r * cols + c)] = value;
    const std::int64_t at = r / kPanel * kPanel * padded + c / 2 * 2 * kPanel + r % kPanel * 2 + c % 2;
    write_element(panels.data() + at * 2, value, DType::bf16);
  }
  [[nodiscard]] const std::byte* panel(std::int64_t row) const { return panels.data() + row * padded * 2; }

  std::int64_t rows, cols, padded;
  std::vector<float> values;
  GuardedBytes panels;
};

/// Tokens [first, first + tokens) of x[*, cols] times rows [begin, end): Y[tokens, end - begin]. Weights,
/// inputs and outputs end at memory that must not be touched.
std::vector<float> multiply(const TileWeights& w, const std::vector<float>& x, std::int64_t first,
                            std::int64_t tokens, std::int64_t begin, std::int64_t end) {
  const GuardedBytes input(tile_input_bytes(tokens, w.cols));
  for (std::int64_t t = 0; t < tokens; t += 2 * kPanel) {
    tile_prepare<TileRounding, false>(x.data() + first * w.cols, w.cols, t, std::min(tokens, t + 2 * kPanel),
                                      w.cols, input.data());
  }
  const std::int64_t rows = end - begin;
  const GuardedBytes y(static_cast<std::size_t>(tokens * rows) * sizeof(float));
  std::fill_n(y.floats(), tokens * rows, 12345.0f);
  TileModel registers;
  tile_multiply(registers,
                MatmulArgs{w.panel(begin), rows, w.cols, input.data(), tokens, y.floats(), rows, nullptr});
  EXPECT_FALSE(registers.configured());
  return {y.floats(), y.floats() + tokens * rows};
}

TEST(Tiles, ProductsMatchReferenceOnAllShapes) {
  std::int64_t step = 0;
  for (const std::int64_t cols : {0, 1, 2, 15, 16, 31, 32, 33, 63, 64, 65, 96, 200, 511, 1030}) {
    for (const std::int64_t tokens : {0, 1, 15, 16, 17, 31, 32, 33, 48, 65, 130}) {
      const std::int64_t rows = step++ * 7 % 70;
      const TileWeights w(rows, cols, static_cast<std::uint32_t>(step));
      const auto x = RandomFloats(static_cast<std::uint32_t>(step + 1)).vector(tokens * cols);
      const auto y = multiply(w, x, 0, tokens, 0, rows);
      // A product passes the additions of 16 products, of the two sums and of the tiles of columns.
      const double chain = 17 + static_cast<double>(w.padded) / 32;
      for (std::int64_t t = 0; t < tokens; ++t) {
        for (std::int64_t r = 0; r < rows; ++r) {
          double expected = 0, magnitude = 0;
          for (std::int64_t c = 0; c < cols; ++c) {
            const float xc = rounded(x[static_cast<std::size_t>(t * cols + c)], DType::bf16);
            const double product = static_cast<double>(w.values[static_cast<std::size_t>(r * cols + c)]) *
                                   static_cast<double>(xc);
            expected += product;
            magnitude += std::abs(product);
          }
          ASSERT_NEAR(static_cast<double>(y[static_cast<std::size_t>(t * rows + r)]), expected,
                      chain * kUnit * magnitude + 1e-36)
              << "row " << r << " of " << rows << ", token " << t << " of " << tokens << ", cols " << cols;
        }
      }
    }
  }
}

TEST(Tiles, GiveTheSameBitsHoweverRowsAndTokensAreCut) {
  constexpr std::int64_t kRows = 150, kTokens = 67;
  for (const std::int64_t cols : {7, 100, 600, 3500}) {
    const TileWeights w(kRows, cols, 3);
    const auto x = RandomFloats(4).vector(kTokens * cols);
    const auto whole = multiply(w, x, 0, kTokens, 0, kRows);
    for (const std::int64_t tokens : {1, 2, 15, 16, 17, 32, 33, 64, 67}) {
      const std::int64_t first = (kTokens - tokens) / 2, begin = tokens * 5 % kRows / kPanel * kPanel,
                         end = begin + 1 + tokens * 7 % (kRows - begin);
      const auto part = multiply(w, x, first, tokens, begin, end);
      for (std::int64_t t = 0; t < tokens; ++t) {
        ASSERT_TRUE(same_bits(whole.data() + (first + t) * kRows + begin, part.data() + t * (end - begin),
                              end - begin))
            << tokens << " tokens";
      }
    }
  }
}

TEST(Tiles, WriteOnlyTheirRowsAndTokens) {
  constexpr std::int64_t kRows = 53, kCols = 20, kTokens = 41;
  const TileWeights w(kRows, kCols, 6);
  const auto x = RandomFloats(7).vector(kTokens * kCols);
  std::vector<std::byte> input(tile_input_bytes(kTokens, kCols));
  tile_prepare<TileRounding, false>(x.data(), kCols, 0, kTokens, kCols, input.data());
  TileModel registers;
  expect_writes_only(kTokens, kRows, [&](float* y, std::int64_t stride) {
    tile_multiply(registers, MatmulArgs{w.panel(0), kRows, kCols, input.data(), kTokens, y, stride, nullptr});
  });
}

TEST(Tiles, NonFiniteValuesReachOnlyTheirOwnOutputs) {
  constexpr std::int64_t kRows = 39, kCols = 45, kTokens = 37;
  for (const float bad : {std::nanf(""), std::numeric_limits<float>::infinity()}) {
    TileWeights w(kRows, kCols, 8);
    w.set(18, 44, bad);
    auto x = RandomFloats(9).vector(kTokens * kCols);
    for (std::int64_t t = 0; t < kTokens; ++t) x[static_cast<std::size_t>(t * kCols + 44)] = 1.0f;
    x[33 * kCols + 1] = bad;
    const auto y = multiply(w, x, 0, kTokens, 0, kRows);
    for (std::int64_t t = 0; t < kTokens; ++t) {
      for (std::int64_t r = 0; r < kRows; ++r) {
        ASSERT_EQ(std::isfinite(y[static_cast<std::size_t>(t * kRows + r)]), r != 18 && t != 33)
            << r << " " << t;
      }
    }
  }
}

/// A processor that gets one product in each tile wrong.
template <int Tile>
struct FaultyTiles : TileModel {
  template <int C, int A, int B>
  void multiply_add() {
    TileModel::multiply_add<C, A, B>();
    if constexpr (C == Tile) {
      alignas(64) float whole[kPanel * kPanel];
      store<C>(whole, kPanel * 4);
      whole[kPanel * kPanel - 1] += 1;
      load<C>(whole, kPanel * 4);
    }
  }
};

TEST(Tiles, AreCheckedBeforeTheyAreTrusted) {
  TileModel right;
  EXPECT_TRUE(tiles_are_right(right));
  EXPECT_FALSE(right.configured());
  FaultyTiles<0> first;
  EXPECT_FALSE(tiles_are_right(first));
  FaultyTiles<1> second;
  EXPECT_FALSE(tiles_are_right(second));
  FaultyTiles<2> third;
  EXPECT_FALSE(tiles_are_right(third));
  FaultyTiles<3> fourth;
  EXPECT_FALSE(tiles_are_right(fourth));
}

TEST(Tiles, InputsAreRoundedToNearestEvenAndPaddedWithZeros) {
  const std::vector<float> x{1.0f + 0x1p-8f, 1.0f + 0x3p-8f, -2.5f};
  std::vector<std::byte> input(tile_input_bytes(1, 3), std::byte{0xFF});
  tile_prepare<TileRounding, false>(x.data(), 3, 0, 1, 3, input.data());
  std::vector<std::uint16_t> halves(input.size() / 2);
  std::memcpy(halves.data(), input.data(), input.size());
  EXPECT_EQ(halves.size(), 2u * 16 * 32);
  EXPECT_EQ(halves[0], 0x3F80);
  EXPECT_EQ(halves[1], 0x3F82);
  EXPECT_EQ(halves[2], 0xC020);
  EXPECT_EQ(std::ranges::count(halves, 0), static_cast<std::int64_t>(halves.size()) - 3);
}

TEST(Tiles, ProbeCountsItsOperations) {
  TileModel registers;
  EXPECT_EQ(tile_probe(registers, 3), 3.0 * 4 * 2 * 16 * 16 * 32);
  EXPECT_FALSE(registers.configured());
}

}  // namespace
}  // namespace qgen::test
