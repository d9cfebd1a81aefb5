#include "qgen/tensor/block_format.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>
#include <vector>

namespace qgen {
namespace {

std::vector<std::byte> from_hex(const std::string& text) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<std::byte>(std::stoi(text.substr(i, 2), nullptr, 16)));
  }
  return bytes;
}

std::vector<float> floats_from_hex(const std::string& text) {
  const std::vector<std::byte> bytes = from_hex(text);
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

DType dtype_named(const std::string& name) {
  for (std::size_t i = 0; i < kWeightTypes; ++i) {
    if (dtype_name(static_cast<DType>(i)) == name) return static_cast<DType>(i);
  }
  throw std::runtime_error("unknown type " + name);
}

/// The lines of block_formats.txt that begin with `kind`, without that word.
std::vector<std::istringstream> golden(const std::string& kind) {
  std::ifstream file(QGEN_TEST_DATA "/tensor/block_formats.txt");
  std::vector<std::istringstream> lines;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(kind + " ")) lines.emplace_back(line.substr(kind.size() + 1));
  }
  return lines;
}

std::vector<float> dequantized(DType dtype, const std::vector<std::byte>& blocks) {
  const auto n = std::ssize(blocks) / block_bytes(dtype) * block_elements(dtype);
  std::vector<float> values(static_cast<std::size_t>(n));
  dequantizer(dtype)(blocks.data(), n, values.data());
  return values;
}

std::vector<std::byte> quantized(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> blocks(static_cast<std::size_t>(row_bytes(dtype, std::ssize(values))));
  quantizer(dtype)(values.data(), std::ssize(values), blocks.data());
  return blocks;
}

/// As samples() of tools/reference/block_formats.py.
std::vector<float> samples(const std::string& distribution, std::size_t count) {
  std::uint32_t state = 12345;
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) {
    double total = 0;
    for (int part = 0; part < 4; ++part) {
      state = state * 1664525u + 1013904223u;
      total += static_cast<double>(state >> 8) / 16777216 - 0.5;
    }
    if (distribution == "heavy") total = total * total * total;
    if (distribution == "shifted") total = total * 0.25 + 1;
    if (distribution == "sparse" && i % 5 != 0) total = 0;
    if (distribution == "rows") total *= static_cast<double>(1 + i / 64 % 7);
    values[i] = static_cast<float>(total);
  }
  return values;
}

double squared_error(DType dtype, const std::vector<float>& values) {
  const std::vector<float> back = dequantized(dtype, quantized(dtype, values));
  double error = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const double difference = static_cast<double>(values[i]) - static_cast<double>(back[i]);
    error += difference * difference;
  }
  return error;
}

TEST(Dequantize, GivesTheBitsOfTheGgufPackage) {
  std::size_t types_seen = 0;
  std::string last;
  for (std::istringstream& line : golden("dequantize")) {
    std::string name, blocks, floats;
    line >> name >> blocks >> floats;
    if (name != last) ++types_seen;
    last = name;
    const std::vector<float> expected = floats_from_hex(floats);
    const std::vector<float> values = dequantized(dtype_named(name), from_hex(blocks));
    ASSERT_EQ(values.size(), expected.size()) << name;
    for (std::size_t i = 0; i < values.size(); ++i) {
      // Which of its many bit patterns a NaN has is left to the processor.
      if (std::isnan(expected[i]) && std::isnan(values[i])) continue;
      ASSERT_EQ(std::bit_cast<std::uint32_t>(values[i]), std::bit_cast<std::uint32_t>(expected[i]))
          << name << " element " << i << ": " << values[i] << ", expected " << expected[i];
    }
  }
  EXPECT_EQ(types_seen, 12u);
}

TEST(Dequantize, TakesBlocksOneAfterTheOtherAtAnyAddress) {
  for (std::size_t type = 0; type < kWeightTypes; ++type) {
    const auto dtype = static_cast<DType>(type);
    const auto elements = static_cast<std::size_t>(block_elements(dtype));
    const auto bytes = static_cast<std::size_t>(block_bytes(dtype));
    std::vector<std::byte> blocks(3 * bytes + 1);
    for (std::size_t i = 0; i < blocks.size(); ++i) blocks[i] = static_cast<std::byte>(i * 37 % 61);
    std::vector<float> together(3 * elements + 1, 7.0f), alone(elements);
    dequantizer(dtype)(blocks.data() + 1, static_cast<std::int64_t>(3 * elements), together.data());
    for (std::size_t block = 0; block < 3; ++block) {
      dequantizer(dtype)(blocks.data() + 1 + block * bytes, static_cast<std::int64_t>(elements),
                         alone.data());
      EXPECT_EQ(std::memcmp(alone.data(), together.data() + block * elements, elements * sizeof(float)), 0)
          << dtype_name(dtype) << " block " << block;
    }
    EXPECT_EQ(together.back(), 7.0f) << dtype_name(dtype);
    dequantizer(dtype)(blocks.data(), 0, nullptr);
  }
}

TEST(Dequantize, IsThereForEveryWeightTypeAndNoOther) {
  for (std::size_t type = 0; type <= static_cast<std::size_t>(DType::boolean); ++type) {
    const auto dtype = static_cast<DType>(type);
    EXPECT_EQ(dequantizer(dtype) != nullptr, is_weight_type(dtype)) << dtype_name(dtype);
  }
}

TEST(Quantize, GivesTheQ8BytesOfTheGgufPackage) {
  std::size_t lines = 0;
  for (std::istringstream& line : golden("quantize")) {
    std::string name, floats, blocks;
    line >> name >> floats >> blocks;
    EXPECT_EQ(quantized(dtype_named(name), floats_from_hex(floats)), from_hex(blocks)) << "block " << lines;
    ++lines;
  }
  EXPECT_EQ(lines, 7u);
}

TEST(Quantize, LeavesNoMoreErrorThanTheLibraryOfTheFormats) {
  std::size_t lines = 0;
  for (std::istringstream& line : golden("error")) {
    std::string name, distribution;
    line >> name >> distribution;
    const DType dtype = dtype_named(name);
    // q4_0 block by block, the others sixteen blocks at a time.
    const std::size_t together = dtype == DType::q4_0 ? 32 : 16 * 256;
    const std::vector<float> values = samples(distribution, dtype == DType::q4_0 ? 2048 : 16384);
    double most = 0, ours = 0, theirs = 0;
    for (std::size_t from = 0; from < values.size(); from += together) {
      double expected = 0;
      ASSERT_TRUE(line >> expected);
      const auto first = values.begin() + static_cast<std::ptrdiff_t>(from);
      const double error = squared_error(dtype, {first, first + static_cast<std::ptrdiff_t>(together)});
      // The numbers of the file have seven digits.
      EXPECT_LE(error, expected * (1 + 1e-5)) << name << " " << distribution << " from " << from;
      most = std::max(most, error / expected);
      ours += error;
      theirs += expected;
    }
    RecordProperty(name + "_" + distribution, std::to_string(ours / theirs));
    ++lines;
  }
  EXPECT_EQ(lines, 15u);
}

TEST(Quantize, KeepsNearlyAllThatItsOwnBlocksHold) {
  for (const DType dtype : {DType::q8_0, DType::q4_0, DType::q4_k, DType::q6_k}) {
    const std::vector<float> values = samples("plain", 1024);
    const std::vector<float> once = dequantized(dtype, quantized(dtype, values));
    EXPECT_LE(squared_error(dtype, once), 0.05 * squared_error(dtype, values)) << dtype_name(dtype);
  }
}

TEST(Quantize, ZerosStayZeros) {
  for (const DType dtype : {DType::q8_0, DType::q4_0, DType::q4_k, DType::q6_k}) {
    EXPECT_EQ(dequantized(dtype, quantized(dtype, std::vector<float>(256))), std::vector<float>(256))
        << dtype_name(dtype);
  }
}

TEST(Quantize, TinyAndLargestValuesStayFinite) {
  for (const DType dtype : {DType::q8_0, DType::q4_0, DType::q4_k, DType::q6_k}) {
    for (const float size : {1e-45f, 1e-38f, 1e-8f, 1e-6f, kLargestQuantized}) {
      std::vector<float> values(256);
      for (std::size_t i = 0; i < 256; ++i) values[i] = size * (i % 3 == 0 ? -1.0f : 0.5f);
      values[255] = size;
      for (const float value : dequantized(dtype, quantized(dtype, values))) {
        ASSERT_TRUE(std::abs(value) <= size * 1.1f + 1e-7f)
            << dtype_name(dtype) << " " << size << ": " << value;
      }
    }
  }
}

TEST(Quantize, NonFiniteValuesDoNoHarm) {
  for (const DType dtype : {DType::q8_0, DType::q4_0, DType::q4_k, DType::q6_k}) {
    for (const float odd : {std::numeric_limits<float>::infinity(), -std::numeric_limits<float>::infinity(),
                            std::numeric_limits<float>::quiet_NaN(), 3e38f, -3e38f}) {
      std::vector<float> values = samples("plain", 512);
      values[300] = odd;
      // The block without it is not touched.
      const std::vector<std::byte> blocks = quantized(dtype, values),
                                   plain = quantized(dtype, samples("plain", 256));
      EXPECT_TRUE(std::equal(plain.begin(), plain.end(), blocks.begin())) << dtype_name(dtype) << " " << odd;
    }
  }
}

TEST(Quantize, IsThereForTheTypesThatCanBeWritten) {
  for (std::size_t type = 0; type <= static_cast<std::size_t>(DType::boolean); ++type) {
    const auto dtype = static_cast<DType>(type);
    const bool expected = dtype <= DType::q4_0 || dtype == DType::q4_k || dtype == DType::q6_k;
    EXPECT_EQ(quantizer(dtype) != nullptr, expected) << dtype_name(dtype);
  }
  const std::vector<float> values{1.5f, -0.1f};
  EXPECT_EQ(quantized(DType::f32, values), from_hex("0000c03fcdccccbd"));
  EXPECT_EQ(quantized(DType::f16, values), from_hex("003e66ae"));
  EXPECT_EQ(quantized(DType::bf16, values), from_hex("c03fcdbd"));
}

}  // namespace
}  // namespace qgen
