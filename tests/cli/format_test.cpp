#include "cli/io/format.h"

#include <gtest/gtest.h>

#include <limits>

#include "cli/io/json_text.h"

namespace qgen::cli {
namespace {

TEST(Format, FixedHasSoManyDecimals) {
  EXPECT_EQ(fixed(1.25, 1), "1.2");
  EXPECT_EQ(fixed(-0.5, 0), "-0");
  EXPECT_EQ(fixed(1234567.891, 2), "1234567.89");
  EXPECT_EQ(fixed(std::numeric_limits<double>::max(), 0).size(), 309U);
}

TEST(Format, BytesAreReadable) {
  EXPECT_EQ(human_bytes(0), "0 bytes");
  EXPECT_EQ(human_bytes(999), "999 bytes");
  EXPECT_EQ(human_bytes(1000), "1.00 kB");
  EXPECT_EQ(human_bytes(999'499), "999 kB");
  EXPECT_EQ(human_bytes(999'999), "1.00 MB");
  EXPECT_EQ(human_bytes(1'192'000'000), "1.19 GB");
  EXPECT_EQ(human_bytes(11'549'832), "11.5 MB");
}

TEST(Format, RatesAreNeverInfiniteNegativeOrNaN) {
  EXPECT_FALSE(rate(0, 1));
  EXPECT_FALSE(rate(5, 0));
  EXPECT_FALSE(rate(-1, 1));
  EXPECT_FALSE(rate(1, -1));
  EXPECT_FALSE(rate(1, std::numeric_limits<double>::quiet_NaN()));
  EXPECT_EQ(rate(10, 4).value(), 2.5);
}

TEST(Format, JsonStringsAreAlwaysValidUtf8) {
  EXPECT_EQ(json_string("a\"\\\n\x01"), R"("a\"\\\n\u0001")");
  EXPECT_EQ(json_string("\xc3\\"), "\"\xef\xbf\xbd\\\\\"");
  EXPECT_EQ(json_string("\xe6\xad"), "\"\xef\xbf\xbd\"");
  EXPECT_EQ(json_string("\xff\xfe\x41"), "\"\xef\xbf\xbd\xef\xbf\xbd\x41\"");
}

}  // namespace
}  // namespace qgen::cli
