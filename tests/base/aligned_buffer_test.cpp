#include "qgen/base/aligned_buffer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <utility>

#include "qgen/base/error.h"

namespace qgen {
namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;

std::uintptr_t address(const AlignedBuffer& buffer) {
  return reinterpret_cast<std::uintptr_t>(buffer.data());
}

TEST(AlignedBuffer, EmptyHoldsNothing) {
  const AlignedBuffer made_empty;
  AlignedBuffer zero(0);
  EXPECT_EQ(made_empty.size(), 0U);
  EXPECT_EQ(made_empty.data(), nullptr);
  EXPECT_EQ(zero.size(), 0U);
  EXPECT_TRUE(zero.as<float>().empty());
}

TEST(AlignedBuffer, IsZeroedAlignedAndWritableToTheLastByte) {
  for (const std::size_t size : {std::size_t{1}, std::size_t{63}, std::size_t{4096}, std::size_t{4097},
                                 2 * kMiB - 1, 2 * kMiB, 2 * kMiB + 1, 5 * kMiB + 12345}) {
    AlignedBuffer buffer(size);
    ASSERT_EQ(buffer.size(), size);
    EXPECT_EQ(address(buffer) % 64, 0U) << size;
    const auto bytes = buffer.as<unsigned char>();
    ASSERT_EQ(bytes.size(), size);
    EXPECT_TRUE(std::all_of(bytes.begin(), bytes.end(), [](unsigned char b) { return b == 0; })) << size;
    std::fill(bytes.begin(), bytes.end(), static_cast<unsigned char>(0xA5));
    EXPECT_EQ(bytes.back(), 0xA5) << size;
  }
}

TEST(AlignedBuffer, LargeOnesStartOnAHugePageBorder) {
  for (const std::size_t size : {2 * kMiB, 3 * kMiB, 64 * kMiB}) {
    EXPECT_EQ(address(AlignedBuffer(size)) % (2 * kMiB), 0U) << size;
  }
}

TEST(AlignedBuffer, ElementsThatDoNotFitWhollyAreLeftOut) {
  AlignedBuffer buffer(11);
  EXPECT_EQ(buffer.as<float>().size(), 2U);
}

TEST(AlignedBuffer, MovesItsMemory) {
  AlignedBuffer first(100);
  first.as<unsigned char>()[99] = 7;
  const std::byte* memory = first.data();

  AlignedBuffer second(std::move(first));
  EXPECT_EQ(second.data(), memory);
  EXPECT_EQ(second.size(), 100U);
  EXPECT_EQ(first.size(), 0U);  // NOLINT(bugprone-use-after-move): a moved-from buffer is an empty one
  EXPECT_TRUE(first.as<float>().empty());

  AlignedBuffer third(3 * kMiB);
  third = std::move(second);
  EXPECT_EQ(third.as<unsigned char>()[99], 7);
  EXPECT_EQ(third.size(), 100U);
}

TEST(AlignedBuffer, ImpossibleSizesThrowMemoryErrorNamingTheSize) {
  for (const std::size_t size : {std::numeric_limits<std::size_t>::max(),
                                 std::numeric_limits<std::size_t>::max() / 2, std::size_t{1} << 60}) {
    try {
      const AlignedBuffer buffer(size);
      FAIL() << "got " << size << " bytes";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::memory);
      EXPECT_NE(std::string(error.what()).find(std::to_string(size)), std::string::npos) << error.what();
    }
  }
}

}  // namespace
}  // namespace qgen
