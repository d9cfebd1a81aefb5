// The loop over tiles of AMX for weights of 8 and 4 bits, on a model of the tile registers. Unpacking uses
// AVX-512, as the real kernels do.
#if defined(__x86_64__)
#include "kernels/cpu_features.h"
#include "kernels/generic/includes.h"
#include "kernels/intrinsics.h"
#include "kernels/packed_integers.h"
#include "kernels/tile_model.h"

#define QGEN_REGION_TARGET "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni"
#include "kernels/region_begin.h"
namespace qgen::kernels::tile_integers {
namespace {
#include "kernels/vocabulary/avx512.inl"
//
// clang-format off
#include "kernels/generic/elements.inl"
#include "kernels/generic/panels.inl"
#include "kernels/generic/panel_integer.inl"
#include "kernels/generic/group_rotation.inl"
#include "kernels/generic/panel_integer_unpack.inl"
#include "kernels/generic/tiles.inl"
#include "kernels/generic/tile_integers.inl"
// clang-format on

template <class W>
void multiply_on_model(const MatmulArgs& args) noexcept {
  test::TileModel registers;
  tile_multiply_integers<W, TileRounding>(registers, args);
}

template <class W, bool Rotated = false>
constexpr MatmulKernel kOnModel{2 * kTileRows, tile_input_bytes, tile_integer_scratch,
                                tile_prepare<TileRounding, Rotated>, multiply_on_model<W>};
constexpr std::array<MatmulKernel, kIntegerTypes> kIntegers{kOnModel<Q8>,  kOnModel<Q4>,  kOnModel<Q4_1>,
                                                            kOnModel<Q4K>, kOnModel<Q6K>, kOnModel<Q8, true>};
}  // namespace
}  // namespace qgen::kernels::tile_integers
#include "kernels/region_end.h"

namespace qgen::test {
namespace {

class TileIntegers : public testing::TestWithParam<IntegerSource> {
 protected:
  void SetUp() override {
    const auto available = available_kernels();
    if (std::ranges::none_of(available, [](const KernelTable* table) { return table->name == "avx512"; })) {
      GTEST_SKIP() << "this processor cannot run the kernels avx512";
    }
  }
  static const MatmulKernel& kernel() {
    return kernels::tile_integers::kIntegers[static_cast<std::size_t>(GetParam().type) -
                                             static_cast<std::size_t>(PackedType::q8)];
  }
};

TEST_P(TileIntegers, ProductsMatchReferenceOnAllShapes) {
  std::uint32_t seed = 1;
  for (const std::int64_t some : {1, 31, 32, 33, 64, 65, 200, 1030}) {
    for (const std::int64_t tokens : {1, 16, 33, 70}) {
      const std::int64_t rows = tokens == 33 ? 130 + seed * 7 % 70 : 1 + seed * 7 % 70;
      const std::int64_t cols = GetParam().whole(some);
      const IntegerWeights w(kernels_named("avx512"), GetParam(), rows, cols, seed++);
      const Matrix x(tokens, cols, seed++);
      const auto y = multiply(kernel(), w, x);
      const Matrix given = w.input_of(x);
      for (std::int64_t t = 0; t < tokens; ++t) {
        for (std::int64_t r = 0; r < rows; ++r) {
          double expected = 0, magnitude = 0;
          for (std::int64_t c = 0; c < given.cols; ++c) {
            const double term =
                static_cast<double>(w.values.row(r)[c]) * static_cast<double>(given.row(t)[c]);
            expected += term;
            magnitude += std::abs(term);
          }
          // Weights and inputs are rounded to eight bits.
          ASSERT_NEAR(static_cast<double>(y[static_cast<std::size_t>(t * rows + r)]), expected,
                      1.1 * 0x1p-7 * magnitude)
              << "row " << r << " of " << rows << ", token " << t << " of " << tokens << ", cols " << cols;
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, TileIntegers, testing::ValuesIn(kIntegerSources),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace qgen::test
#endif
