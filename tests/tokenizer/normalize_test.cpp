#include "tokenizer/normalize.h"

#include "tokenizer/support.h"

namespace qgen {
namespace {

using testing::golden;
using testing::golden_lines;
using testing::read_file;

std::string nfc(std::string_view text) {
  std::string buffer;
  return std::string(unicode::nfc(text, buffer));
}

TEST(Nfc, TextsBecomeWhatTheReferenceMakesOfThem) {
  const std::vector<Json> lines = golden_lines("nfc.jsonl");
  ASSERT_GE(lines.size(), 400U);
  for (const Json& line : lines) {
    EXPECT_EQ(nfc(*(*line.as_array())[0].as_string()), *(*line.as_array())[1].as_string());
  }
}

TEST(Nfc, EveryCodePointIsNormalisedAsInTheReference) {
  const Json expected = parse_json(read_file(golden("code_points.json")), "code_points.json");
  for (std::size_t chunk = 0; chunk < testing::kCodePointChunks; ++chunk) {
    EXPECT_EQ(testing::fnv_hash(nfc(testing::code_points_in_company(chunk))),
              *(*expected.find("nfc")->as_array())[chunk].as_string())
        << "chunk " << chunk;
  }
}

TEST(Nfc, NormalTextIsNotCopied) {
  std::string buffer;
  for (const std::string_view text :
       {"", "plain", "d\u00e9j\u00e0 vu \u0915\u094d\u0937 \u05d1\u05b0\u05bc"}) {
    EXPECT_EQ(unicode::nfc(text, buffer).data(), text.data());
  }
}

TEST(Nfc, BytesThatAreNotUtf8StayAndCombineWithNothing) {
  EXPECT_EQ(nfc("e\xFF\u0301 e\u0301\xC3"), "e\xFF\u0301 \u00e9\xC3");
  EXPECT_EQ(nfc("\xFF\u0301\u0323"), "\xFF\u0323\u0301");
  EXPECT_EQ(nfc("\xED\xA0\x80"), "\xED\xA0\x80");
}

TEST(Nfc, HangulIsComposedByArithmetic) {
  EXPECT_EQ(nfc("\u1100\u1161\u11a8"), "\uac01");
  EXPECT_EQ(nfc("\uac00\u11a8"), "\uac01");
  EXPECT_EQ(nfc("\uac01\u11a8"), "\uac01\u11a8");
}

}  // namespace
}  // namespace qgen
