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

/// The squared error of rounding to -127..127 by a scale.
double byte_error(std::span<const float> w, double scale) {
  double sum = 0;
  for (const float value : w) {
    const double error = static_cast<double>(value) - scale * nearest(value, scale, -127, 127);
    sum += error * error;
  }
  return sum;
}

/// Scales of f16 near largest / 127.
std::vector<double> byte_scales(std::span<const float> w) {
  const float largest = largest_of(w);
  std::vector<double> scales;
  const std::uint16_t last = f32_to_f16(largest / 123);
  for (std::uint16_t bits = f32_to_f16(largest / 127.5f); bits <= last; ++bits) {
    scales.push_back(static_cast<double>(f16_to_f32(bits)));
  }
  return scales;
}

/// The scale by which a group was rounded to nearest; 0: there is none.
double byte_scale_of(std::span<const float> w, std::span<const float> rounded) {
  for (const double scale : byte_scales(w)) {
    bool fits = true;
    for (std::size_t i = 0; fits && i < w.size(); ++i) {
      const double expected = 127 * scale * nearest(w[i], scale, -127, 127);
      fits = std::abs(static_cast<double>(rounded[i]) - expected) <= 1e-6 * std::abs(expected);
    }
    if (fits) return scale;
  }
  return 0;
}

TEST_P(PackIntegersTest, RoundsToNearestByAScaleNearTheLargestOf127) {
  const auto& q8 = kernels(PackedType::q8);
  for (const std::int64_t cols : {1, 31, 32, 33, 64, 65, 129, 200}) {
    const Matrix w(q8.panel_rows + 3, cols, static_cast<std::uint32_t>(cols));
    const Matrix rounded = rounded_times_127(Panels(q8, w));
    for (std::int64_t r = 0; r < w.rows; ++r) {
      for (std::int64_t g = 0; g < groups(cols); ++g) {
        const auto values = group(w, r, g);
        const double scale = byte_scale_of(values, group(rounded, r, g));
        ASSERT_NE(scale, 0) << "row " << r << ", group " << g << " of " << cols << " columns";
        const double usual = byte_error(values, f16(largest_of(values) / 127.0f));
        EXPECT_LE(byte_error(values, scale), usual * (1 + 1e-4));
      }
    }
  }
}

TEST_P(PackIntegersTest, EightBitsLoseLessThanByTheLargestOf127) {
  const auto& q8 = kernels(PackedType::q8);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  Matrix w(2 * q8.panel_rows, 256);
  w.fill([&] { return 0.02f * normal(random); });
  const Matrix rounded = rounded_times_127(Panels(q8, w));
  double ours = 0, plain = 0;
  for (std::int64_t r = 0; r < w.rows; ++r) {
    for (std::int64_t g = 0; g < groups(w.cols); ++g) {
      ours += byte_error(group(w, r, g), byte_scale_of(group(w, r, g), group(rounded, r, g)));
      plain += byte_error(group(w, r, g), f16(largest_of(group(w, r, g)) / 127.0f));
    }
  }
  RecordProperty("of_plain", std::to_string(ours / plain));
  EXPECT_LT(ours, 0.88 * plain);
}

TEST_P(PackIntegersTest, RoundsTiesToEven) {
  const auto& q8 = kernels(PackedType::q8);
  // All but one are integers by a scale of 1, which loses least for that.
  Matrix w(32, kGroup);
  for (std::int64_t r = 0; r < w.rows; ++r) {
    for (std::int64_t c = 0; c < kGroup; ++c) w.row(r)[c] = static_cast<float>(c * 37 % 128);
    w.row(r)[0] = 127.0f;
    w.row(r)[1] = static_cast<float>(r) - 15.5f;
  }
  const Matrix rounded = rounded_times_127(Panels(q8, w));
  const float expected[] = {-16, -14, -14, -12, -12, -10, -10, -8, -8, -6, -6, -4, -4, -2, -2, 0,
                            0,   2,   2,   4,   4,   6,   6,   8,  8,  10, 10, 12, 12, 14, 14, 16};
  for (std::int64_t r = 0; r < w.rows; ++r) EXPECT_FLOAT_EQ(rounded.row(r)[1], 127 * expected[r]) << r;
}

TEST_P(PackIntegersTest, KeepsIntegersThatTheTypeHolds) {
  for (const PackedType type : {PackedType::q8, PackedType::q4}) {
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

TEST_P(PackIntegersTest, RotatedOnesAreQ8OfRotatedGroups) {
  const auto &q8 = kernels(PackedType::q8), &turned = kernels(PackedType::q8_rotated);
  for (const std::int64_t cols : {1, 31, 32, 33, 64, 65, 129, 200}) {
    ASSERT_EQ(turned.panel_bytes(cols), q8.panel_bytes(cols));
    const Matrix w(q8.panel_rows, cols, static_cast<std::uint32_t>(cols)), of_groups = rotated(w, 1);
    std::vector<std::byte> expected(q8.panel_bytes(cols)), packed(expected.size());
    q8.pack(of_groups.row(0), of_groups.cols, w.rows, of_groups.cols, expected.data());
    turned.pack(w.row(0), w.cols, w.rows, cols, packed.data());
    EXPECT_EQ(packed, expected) << cols;
  }
}

/// Also where one weight of a group is far larger than the others, which q8 rounds coarsely for it.
TEST_P(PackIntegersTest, RotatedOnesKeepTheWeights) {
  const auto& turned = kernels(PackedType::q8_rotated);
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const float outlier : {1.0f, 20.0f}) {
    Matrix w(turned.panel_rows, 256);
    w.fill([&] { return 0.02f * normal(random); });
    for (std::int64_t r = 0; r < w.rows; ++r) {
      for (std::int64_t c = r % kGroup; c < w.cols; c += kGroup) w.row(r)[c] *= outlier;
    }
    const Matrix rounded = rounded_times_127(Panels(turned, w));
    double error = 0, squares = 0, plain = 0;
    for (std::int64_t r = 0; r < w.rows; ++r) {
      for (std::int64_t c = 0; c < w.cols; ++c) {
        const double value = static_cast<double>(w.row(r)[c]);
        error += std::pow(static_cast<double>(rounded.row(r)[c]) / 127 - value, 2);
        squares += value * value;
      }
      for (std::int64_t g = 0; g < groups(w.cols); ++g) {
        plain += byte_error(group(w, r, g), f16(largest_of(group(w, r, g)) / 127.0f));
      }
    }
    EXPECT_LT(error, 4e-5 * squares) << outlier;
    EXPECT_LT(error, (outlier > 1 ? 0.3 : 1.0) * plain) << outlier;
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
