#include "kernels/packed_integers.h"

namespace qgen::test {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

class PackIntegersTest : public KernelTest {
 protected:
  [[nodiscard]] const PackedKernels& kernels(PackedType type) const {
    return table().packed[static_cast<std::size_t>(type)];
  }
};
QGEN_FOR_ALL_TABLES(PackIntegersTest);

/// Group g of a row: up to kGroup values.
std::span<const float> group(const Matrix& w, std::int64_t r, std::int64_t g) {
  return {w.row(r) + g * kGroup, static_cast<std::size_t>(std::min(kGroup, w.cols - g * kGroup))};
}

std::int64_t groups(std::int64_t cols) {
  return (cols + kGroup - 1) / kGroup;
}

float largest_of(std::span<const float> values) {
  float largest = 0;
  for (const float value : values) largest = std::max(largest, std::abs(value));
  return largest;
}

double f16(float value) {
  return static_cast<double>(f16_to_f32(f32_to_f16(value)));
}

/// The integer in [low, high] nearest to value / scale, ties to even.
double nearest(float value, double scale, double low, double high) {
  return scale == 0 ? 0 : std::clamp(std::nearbyint(static_cast<double>(value) / scale), low, high);
}

/// Weighted by w^2 and its mean.
double squared_error(std::span<const float> w, double scale) {
  double mean = 0, sum = 0;
  for (const float value : w)
    mean += static_cast<double>(value) * static_cast<double>(value) / static_cast<double>(w.size());
  for (const float value : w) {
    const double wide = static_cast<double>(value), error = wide - scale * nearest(value, scale, -8, 7);
    sum += (mean + wide * wide) * error * error;
  }
  return sum;
}

/// By the scale that maps the value of the largest magnitude to -8.
double plain_error(std::span<const float> w) {
  float extreme = 0;
  for (const float value : w) {
    if (std::abs(value) > std::abs(extreme)) extreme = value;
  }
  return squared_error(w, f16(extreme / -8));
}

/// The least error of thousands of scales.
double least_error(std::span<const float> w) {
  const double largest = static_cast<double>(largest_of(w));
  double least = squared_error(w, 0);
  for (double divisor = 4; divisor < 16; divisor += 0.01) {
    for (const double sign : {-1.0, 1.0}) {
      least = std::min(least, squared_error(w, f16(static_cast<float>(sign * largest / divisor))));
    }
  }
  return least;
}

TEST_P(PackIntegersTest, TakesEightAndAHalfOrFourAndAHalfBitsForAWeight) {
  for (const std::int64_t cols : {1024, 3072}) {
    const auto q8 = kernels(PackedType::q8), q4 = kernels(PackedType::q4);
    EXPECT_EQ(static_cast<std::int64_t>(q8.panel_bytes(cols)) * 16, q8.panel_rows * cols * 17);
    EXPECT_EQ(static_cast<std::int64_t>(q4.panel_bytes(cols)) * 16, q4.panel_rows * cols * 9);
  }
  for (const auto& [name, type, dtype] : kRoundedSources) {
    EXPECT_EQ(kernels(type).panel_bytes(0), 0u) << name;
    for (std::int64_t cols = 1; cols < 200; ++cols) EXPECT_EQ(kernels(type).panel_bytes(cols) % 64, 0u);
  }
}

TEST_P(PackIntegersTest, RoundsToNearestByTheLargestOf127) {
  const auto& q8 = kernels(PackedType::q8);
  for (const std::int64_t cols : {1, 31, 32, 33, 64, 65, 129, 200}) {
    const Matrix w(q8.panel_rows + 3, cols, static_cast<std::uint32_t>(cols));
    const Matrix rounded = rounded_times_127(Panels(q8, w));
    for (std::int64_t r = 0; r < w.rows; ++r) {
      for (std::int64_t c = 0; c < cols; ++c) {
        const double scale = f16(largest_of(group(w, r, c / kGroup)) / 127.0f);
        const double expected = scale * nearest(w.row(r)[c], scale, -127, 127);
        ASSERT_FLOAT_EQ(rounded.row(r)[c], static_cast<float>(127 * expected))
            << "row " << r << ", column " << c << " of " << cols;
      }
    }
  }
}

TEST_P(PackIntegersTest, RoundsTiesToEven) {
  const auto& q8 = kernels(PackedType::q8);
  Matrix w(1, kGroup);
  for (int c = 0; c < kGroup; ++c) w.row(0)[c] = static_cast<float>(c) - 15.5f;
  w.row(0)[0] = 127.0f;  // the scale is 1
  const Matrix rounded = rounded_times_127(Panels(q8, w));
  for (int c = 1; c < kGroup; ++c) {
    const float expected[] = {-16, -14, -14, -12, -12, -10, -10, -8, -8, -6, -6, -4, -4, -2, -2, 0,
                              0,   2,   2,   4,   4,   6,   6,   8,  8,  10, 10, 12, 12, 14, 14, 16};
    EXPECT_FLOAT_EQ(rounded.row(0)[c], 127 * expected[c]) << w.row(0)[c];
  }
}

TEST_P(PackIntegersTest, KeepsIntegersThatTheTypeHolds) {
  for (const auto& [name, type, dtype] : kRoundedSources) {
    const int low = type == PackedType::q8 ? -127 : -8, high = type == PackedType::q8 ? 127 : 7;
    std::mt19937 random(1);
    Matrix w(kernels(type).panel_rows, 96);
    w.fill([&] {
      return static_cast<float>(low + static_cast<int>(random() % static_cast<unsigned>(high - low + 1)));
    });
    for (std::int64_t r = 0; r < w.rows; ++r) {
      for (std::int64_t g = 0; g < 3; ++g) w.row(r)[g * kGroup + r % kGroup] = static_cast<float>(low);
    }
    const Matrix rounded = rounded_times_127(Panels(kernels(type), w));
    for (std::int64_t r = 0; r < w.rows; ++r) {
      for (std::int64_t c = 0; c < w.cols; ++c) ASSERT_FLOAT_EQ(rounded.row(r)[c], 127 * w.row(r)[c]);
    }
  }
}

/// The scale, of f16, of which a group's values are multiples by -8..7, and nearest ones; 0: there is none.
double scale_of(std::span<const float> w, std::span<const float> rounded) {
  const float largest = largest_of(rounded);
  for (int steps = 8; steps > 0; --steps) {
    for (const float sign : {-1.0f, 1.0f}) {
      const double scale = f16(sign * largest / 127 / static_cast<float>(steps));
      bool fits = scale != 0;
      for (std::size_t i = 0; fits && i < w.size(); ++i) {
        const double expected = scale * nearest(w[i], scale, -8, 7);
        fits =
            std::abs(static_cast<double>(rounded[i]) - 127 * expected) <= 1e-6 * static_cast<double>(largest);
      }
      if (fits) return scale;
    }
  }
  return 0;
}

TEST_P(PackIntegersTest, RoundsToFourBitsByAScaleOfF16) {
  const auto& q4 = kernels(PackedType::q4);
  for (const std::int64_t cols : {1, 31, 33, 64, 65, 129}) {
    const Matrix w(q4.panel_rows + 1, cols, static_cast<std::uint32_t>(cols));
    const Matrix rounded = rounded_times_127(Panels(q4, w));
    for (std::int64_t r = 0; r < w.rows; ++r) {
      for (std::int64_t g = 0; g < groups(cols); ++g) {
        ASSERT_NE(scale_of(group(w, r, g), group(rounded, r, g)), 0) << "row " << r << ", group " << g;
      }
    }
  }
}

TEST_P(PackIntegersTest, FourBitsLoseMuchLessThanByScalesOfTheExtreme) {
  const auto& q4 = kernels(PackedType::q4);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Matrix w(2 * q4.panel_rows, 256);
  w.fill([&] { return 0.02f * normal(random); });
  const Matrix rounded = rounded_times_127(Panels(q4, w));
  double ours = 0, plain = 0, least = 0;
  for (std::int64_t r = 0; r < w.rows; ++r) {
    for (std::int64_t g = 0; g < groups(w.cols); ++g) {
      const double scale = scale_of(group(w, r, g), group(rounded, r, g));
      ASSERT_NE(scale, 0);
      ours += squared_error(group(w, r, g), scale);
      plain += plain_error(group(w, r, g));
      least += least_error(group(w, r, g));
    }
  }
  RecordProperty("of_plain", std::to_string(ours / plain));
  RecordProperty("of_least", std::to_string(ours / least));
  EXPECT_LT(ours, 0.93 * plain);
  EXPECT_LT(ours, 1.02 * least);
}

TEST_P(PackIntegersTest, ZeroAndTinyGroupsBecomeZero) {
  for (const auto& [name, type, dtype] : kRoundedSources) {
    Matrix w(kernels(type).panel_rows, 70, 3);
    for (std::int64_t c = 0; c < kGroup; ++c) w.row(0)[c] = 0.0f, w.row(1)[c] = 1e-30f * w.row(2)[c];
    const Matrix rounded = rounded_times_127(Panels(kernels(type), w));
    for (std::int64_t c = 0; c < kGroup; ++c) {
      EXPECT_EQ(rounded.row(0)[c], 0.0f);
      EXPECT_EQ(rounded.row(1)[c], 0.0f);
    }
    EXPECT_NE(largest_of(group(rounded, 2, 0)), 0.0f);
  }
}

TEST_P(PackIntegersTest, AGroupThatCannotBeHeldIsNaN) {
  for (const auto& [name, type, dtype] : kRoundedSources) {
    for (const float bad : {kNan, kInfinity, -kInfinity, 1e8f, -3e38f}) {
      for (const std::int64_t place : {0, 17, 31, 32, 63, 64, 69}) {
        Matrix w(kernels(type).panel_rows, 70, 4);
        w.row(1)[place] = bad;
        const Matrix rounded = rounded_times_127(Panels(kernels(type), w));
        for (std::int64_t r = 0; r < 3; ++r) {
          // A NaN scale spoils its row whatever the input.
          for (std::int64_t c = 0; c < w.cols; ++c) ASSERT_EQ(std::isnan(rounded.row(r)[c]), r == 1) << bad;
        }
      }
    }
  }
}

TEST_P(PackIntegersTest, TakesRowsAtAnyStrideAndReadsNoFurther) {
  for (const auto& [name, type, dtype] : kRoundedSources) {
    const auto& packed = kernels(type);
    for (const std::int64_t cols : {1, 5, 32, 47, 64, 100}) {
      for (std::int64_t rows = 1; rows <= packed.panel_rows; ++rows) {
        const Matrix w(rows, cols, 5);
        std::vector<float> wide(static_cast<std::size_t>(rows * (cols + 7)));
        for (std::int64_t r = 0; r < rows; ++r) std::copy_n(w.row(r), cols, wide.data() + r * (cols + 7));
        std::vector<std::byte> a(packed.panel_bytes(cols)), b(a.size());
        packed.pack(w.row(0), cols, rows, cols, a.data());
        packed.pack(wide.data(), cols + 7, rows, cols, b.data());
        ASSERT_EQ(a, b);
      }
    }
  }
}

}  // namespace
}  // namespace qgen::test
