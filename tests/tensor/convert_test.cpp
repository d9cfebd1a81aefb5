#include "qgen/tensor/convert.h"

#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <limits>
#include <string>

#include "support/fnv.h"

namespace qgen {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Golden {
  std::size_t bytes = 0;
  std::uint64_t fingerprint = 0;
};

/// What NumPy and PyTorch give for the same inputs (tools/reference/base_values.py).
Golden golden(const std::string& name) {
  std::ifstream file(QGEN_TEST_DATA "/golden/half_rounding.txt");
  std::string row, fingerprint;
  std::size_t bytes = 0;
  while (file >> row >> bytes >> fingerprint) {
    if (row == name) return {bytes, std::stoull(fingerprint, nullptr, 16)};
  }
  ADD_FAILURE() << "no row " << name;
  return {};
}

/// Calls visit with the float of every upper part of `high_bits` bits followed by each of `lows`, NaN left
/// out.
template <typename Visit>
void for_each_rounding_input(int high_bits, const std::array<std::uint32_t, 6>& lows, const Visit& visit) {
  for (std::uint32_t high = 0; high < (1U << high_bits); ++high) {
    for (const std::uint32_t low : lows) {
      const auto value = std::bit_cast<float>((high << (32 - high_bits)) | low);
      if (!std::isnan(value)) visit(value);
    }
  }
}

/// The value of a finite half by its definition (IEEE 754, 3.4).
double half_value(std::uint32_t half) {
  const int exponent = static_cast<int>((half >> 10) & 31U);
  const int fraction = static_cast<int>(half & 1023U);
  const double magnitude =
      exponent == 0 ? std::ldexp(fraction, -24) : std::ldexp(1024 + fraction, exponent - 25);
  return (half & 0x8000U) != 0 ? -magnitude : magnitude;
}

TEST(HalfToFloat, IsExactForAll65536) {
  for (std::uint32_t h = 0; h < 65536; ++h) {
    const float value = f16_to_f32(static_cast<std::uint16_t>(h));
    ASSERT_EQ(std::signbit(value), (h & 0x8000U) != 0) << h;
    if ((h & 0x7C00U) != 0x7C00U) {
      ASSERT_EQ(value, half_value(h)) << h;
    } else if ((h & 0x3FFU) == 0) {
      ASSERT_EQ(std::fabs(value), kInfinity) << h;
    } else {
      ASSERT_TRUE(std::isnan(value)) << h;
    }
  }
}

TEST(HalfToFloat, AgreesWithNumPyBitForBit) {
  test::Fnv1a hash;
  std::size_t bytes = 0;
  for (std::uint32_t h = 0; h < 65536; ++h) {
    const float value = f16_to_f32(static_cast<std::uint16_t>(h));
    if (std::isnan(value)) continue;
    const auto bits = std::bit_cast<std::uint32_t>(value);
    hash.add(static_cast<std::uint16_t>(bits & 0xFFFFU));
    hash.add(static_cast<std::uint16_t>(bits >> 16));
    bytes += 4;
  }
  EXPECT_EQ(bytes, golden("f16_to_f32").bytes);
  EXPECT_EQ(hash.value(), golden("f16_to_f32").fingerprint);
}

TEST(FloatToHalf, BringsEveryHalfBack) {
  for (std::uint32_t h = 0; h < 65536; ++h) {
    const float value = f16_to_f32(static_cast<std::uint16_t>(h));
    const std::uint32_t back = f32_to_f16(value);
    if (std::isnan(value)) {
      ASSERT_TRUE((back & 0x7C00U) == 0x7C00U && (back & 0x3FFU) != 0) << h;
      ASSERT_EQ(back & 0x8000U, h & 0x8000U) << h;
    } else {
      ASSERT_EQ(back, h);
    }
  }
}

TEST(FloatToHalf, RoundsAsNumPyAroundEveryBorder) {
  test::Fnv1a hash;
  std::size_t bytes = 0;
  for_each_rounding_input(19, {0, 1, 0xFFF, 0x1000, 0x1001, 0x1FFF}, [&](float value) {
    hash.add(f32_to_f16(value));
    bytes += 2;
  });
  EXPECT_EQ(bytes, golden("f32_to_f16").bytes);
  EXPECT_EQ(hash.value(), golden("f32_to_f16").fingerprint);
}

TEST(FloatToHalf, BordersByHand) {
  EXPECT_EQ(f32_to_f16(65504.0F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65519.996F), 0x7BFF);
  EXPECT_EQ(f32_to_f16(65520.0F), 0x7C00) << "halfway to the next power rounds to infinity";
  EXPECT_EQ(f32_to_f16(1e5F), 0x7C00);
  EXPECT_EQ(f32_to_f16(-kInfinity), 0xFC00);
  EXPECT_EQ(f32_to_f16(0x1p-14F), 0x0400) << "smallest normal";
  EXPECT_EQ(f32_to_f16(0x1p-24F), 0x0001) << "smallest subnormal";
  EXPECT_EQ(f32_to_f16(0x1p-25F), 0x0000) << "halfway to zero, ties to even";
  EXPECT_EQ(f32_to_f16(0x1.000002p-25F), 0x0001);
  EXPECT_EQ(f32_to_f16(0x1.8p-24F), 0x0002) << "tie, to even";
  EXPECT_EQ(f32_to_f16(-0.0F), 0x8000);
  EXPECT_EQ(f32_to_f16(1.0F + 0x1p-11F), 0x3C00) << "tie, to even";
  EXPECT_EQ(f32_to_f16(1.0F + 0x1.8p-10F), 0x3C02) << "tie, to even";
}

TEST(BrainFloat, WideningKeepsTheBits) {
  for (std::uint32_t b = 0; b < 65536; ++b) {
    const float value = bf16_to_f32(static_cast<std::uint16_t>(b));
    ASSERT_EQ(std::bit_cast<std::uint32_t>(value), b << 16);
    if (std::isnan(value)) {
      ASSERT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value)))) << b;
    } else {
      ASSERT_EQ(f32_to_bf16(value), b);
    }
  }
}

TEST(BrainFloat, RoundsAsPyTorchAroundEveryBorder) {
  test::Fnv1a hash;
  std::size_t bytes = 0;
  for_each_rounding_input(16, {0, 1, 0x7FFF, 0x8000, 0x8001, 0xFFFF}, [&](float value) {
    hash.add(f32_to_bf16(value));
    bytes += 2;
  });
  EXPECT_EQ(bytes, golden("f32_to_bf16").bytes);
  EXPECT_EQ(hash.value(), golden("f32_to_bf16").fingerprint);
}

TEST(BrainFloat, NaNWithOnlyLowBitsStaysNaN) {
  const auto value = std::bit_cast<float>(0x7F800001U);
  EXPECT_TRUE(std::isnan(bf16_to_f32(f32_to_bf16(value))));
  EXPECT_TRUE(std::isnan(f16_to_f32(f32_to_f16(value))));
  EXPECT_EQ(f32_to_bf16(std::numeric_limits<float>::max()), 0x7F80) << "the largest float rounds to infinity";
}

}  // namespace
}  // namespace qgen
