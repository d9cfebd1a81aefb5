#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <string>

#include "qgen/weights/checkpoint.h"
#include "support/error_of.h"
#include "support/safetensors_bytes.h"

namespace qgen {
namespace {

using test::error_of;
using test::safetensors_file;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

Checkpoint load(std::string_view file) {
  return Checkpoint::from_bytes(as_bytes(file), "m.safetensors");
}

std::string refusal(const std::string& file) {
  return error_of([&] { load(file); });
}

const std::string kSixteen(16, '\1');
const std::string kOne = R"({"a":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]}})";

TEST(Safetensors, GivesTensorsAsTheFileHasThem) {
  const std::string header =
      R"({"b":{"dtype":"BF16","shape":[3],"data_offsets":[8,14]},"__metadata__":{"format":"pt"},)"
      R"("a":{"dtype":"F16","shape":[2,2],"data_offsets":[0,8]}})";
  const std::string file = safetensors_file(header, 160, "\1\2\3\4\5\6\7\10\11\12\13\14\15\16");
  const Checkpoint checkpoint = load(file);
  ASSERT_EQ(checkpoint.tensors().size(), 2u);
  const StoredTensor& a = *checkpoint.find("a");
  EXPECT_EQ(a.dtype, DType::f16);
  EXPECT_EQ(a.shape, (std::vector<std::int64_t>{2, 2}));
  EXPECT_EQ(as_text(a.data), "\1\2\3\4\5\6\7\10");
  const StoredTensor& b = *checkpoint.find("b");
  EXPECT_EQ(b.dtype, DType::bf16);
  EXPECT_EQ(as_text(b.data), "\11\12\13\14\15\16");
  EXPECT_EQ(checkpoint.find("__metadata__"), nullptr);
}

TEST(Safetensors, RefusesAHeaderLongerThanTheFile) {
  const std::string file("\x40\x9D\xDF\x07\0\0\0\0", 8);
  EXPECT_THAT(refusal(file), AllOf(HasSubstr("m.safetensors"), HasSubstr("132095296 bytes missing")));
  EXPECT_THAT(refusal(std::string(8, '\xFF')), HasSubstr("18446744073709551615 bytes missing"));
}

TEST(Safetensors, RefusesARepeatedNameByThatName) {
  const std::string header = R"({"twin":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},)"
                             R"("twin":{"dtype":"F32","shape":[2,2],"data_offsets":[16,32]}})";
  EXPECT_THAT(refusal(safetensors_file(header, kSixteen + kSixteen)), HasSubstr("\"twin\" occurs twice"));
}

TEST(Safetensors, TakesTensorsWithoutElements) {
  const std::string empty =
      safetensors_file(R"({"a":{"dtype":"I32","shape":[2,0],"data_offsets":[0, 0]}})", 60, "");
  ASSERT_EQ(static_cast<unsigned char>(empty[0]), 0x3C);
  const Checkpoint checkpoint = load(empty);
  EXPECT_EQ(checkpoint.find("a")->data.size(), 0u);
  EXPECT_EQ(checkpoint.find("a")->shape, (std::vector<std::int64_t>{2, 0}));
  // Beside others, at any border of theirs.
  const std::string beside =
      R"({"z":{"dtype":"F32","shape":[0],"data_offsets":[0,0]},"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},)"
      R"("e":{"dtype":"F32","shape":[0,7],"data_offsets":[16,16]}})";
  EXPECT_EQ(load(safetensors_file(beside, kSixteen)).tensors().size(), 3u);
  EXPECT_EQ(load(safetensors_file("{}", "")).tensors().size(), 0u);
}

TEST(Safetensors, TakesAShapeWithoutDimensionsAsOneElement) {
  const std::string file =
      safetensors_file(R"({"a":{"dtype":"I32","shape":[],"data_offsets":[0,4]}})", 60, "\1\2\3\4");
  EXPECT_EQ(load(file).find("a")->data.size(), 4u);
}

TEST(Safetensors, RefusesAnElementWithoutBytes) {
  const std::string file =
      safetensors_file(R"({"a":{"dtype":"I32","shape":[1],"data_offsets":[0,0]}})", 60, "");
  EXPECT_THAT(refusal(file),
              AllOf(HasSubstr("tensor a"), HasSubstr("takes 4 bytes"), HasSubstr("span 0 bytes")));
}

TEST(Safetensors, NamesTheFileAndTheMissingBytesWhereverItIsCut) {
  const std::string whole = safetensors_file(kOne, 60, kSixteen);
  ASSERT_EQ(load(whole).tensors().size(), 1u);
  EXPECT_THAT(refusal(whole.substr(0, whole.size() - 2)),
              AllOf(HasSubstr("m.safetensors: truncated"), HasSubstr("2 bytes missing")));
  EXPECT_THAT(refusal(whole.substr(0, 7)), AllOf(HasSubstr("truncated"), HasSubstr("1 byte missing")));
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const std::size_t missing = size < 8 ? 8 - size : size < 68 ? 68 - size : whole.size() - size;
    const std::string count = std::to_string(missing) + (missing == 1 ? " byte" : " bytes") + " missing";
    EXPECT_THAT(refusal(whole.substr(0, size)), AllOf(HasSubstr("m.safetensors"), HasSubstr(count))) << size;
  }
}

TEST(Safetensors, RefusesTensorsThatShareBytes) {
  std::string header = "{";
  for (char name = 'a'; name < 'k'; ++name) {
    header += std::string(name == 'a' ? "" : ",") + '"' + name +
              R"(":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]})";
  }
  EXPECT_THAT(refusal(safetensors_file(header + "}", kSixteen)), HasSubstr("tensors a and b share bytes"));
  const std::string partly =
      R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"b":{"dtype":"F32","shape":[4],"data_offsets":[12,28]}})";
  EXPECT_THAT(refusal(safetensors_file(partly, kSixteen + std::string(12, 'x'))), HasSubstr("share bytes"));
  const std::string inside =
      R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"b":{"dtype":"F32","shape":[0],"data_offsets":[8,8]}})";
  EXPECT_THAT(refusal(safetensors_file(inside, kSixteen)), HasSubstr("share bytes"));
}

TEST(Safetensors, RefusesBytesThatBelongToNoTensor) {
  const std::string gap =
      R"({"a":{"dtype":"F32","shape":[4],"data_offsets":[0,16]},"b":{"dtype":"F32","shape":[4],"data_offsets":[32,48]}})";
  EXPECT_THAT(refusal(safetensors_file(gap, std::string(48, 'x'))), HasSubstr("16 bytes before tensor b"));
  EXPECT_THAT(refusal(safetensors_file(kOne, kSixteen + "x")), HasSubstr("1 byte at the end"));
  const std::string late = R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})";
  EXPECT_THAT(refusal(safetensors_file(late, "12345678")), HasSubstr("4 bytes before tensor a"));
  EXPECT_THAT(refusal(safetensors_file("{}", "x")), HasSubstr("1 byte at the end"));
}

TEST(Safetensors, RefusesSizesThatOverflow) {
  const auto with_shape = [](const std::string& shape) {
    return safetensors_file(R"({"big":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":[0,16]}})",
                            kSixteen);
  };
  // 2^32 * 2^32 * 4 and 2^62 * 4 are 0 in 64 bits, 2^62 * 4 + 4 elements would be 16 bytes.
  EXPECT_THAT(refusal(with_shape("[4294967296,4294967296]")),
              AllOf(HasSubstr("tensor big"), HasSubstr("overflows")));
  EXPECT_THAT(refusal(with_shape("[4611686018427387904]")), HasSubstr("overflows"));
  EXPECT_THAT(refusal(with_shape("[4611686018427387908]")), HasSubstr("overflows"));
  EXPECT_THAT(refusal(with_shape("[0,2305843009213693952]")), HasSubstr("overflows"));
  EXPECT_THAT(refusal(with_shape("[9223372036854775808]")), HasSubstr("shape: integers"));
  EXPECT_THAT(refusal(with_shape("[-1,-4]")), HasSubstr("shape: integers"));
  EXPECT_THAT(refusal(with_shape("[4.0]")), HasSubstr("shape: integers"));
  EXPECT_THAT(refusal(with_shape("[5]")), AllOf(HasSubstr("takes 20 bytes"), HasSubstr("span 16 bytes")));
  EXPECT_THAT(refusal(with_shape("4")), HasSubstr("shape is missing or no list"));
}

TEST(Safetensors, RefusesOffsetsThatAreNoRange) {
  const auto with_offsets = [](const std::string& offsets) {
    return safetensors_file(R"({"a":{"dtype":"U8","shape":[16],"data_offsets":)" + offsets + "}}", kSixteen);
  };
  ASSERT_EQ(load(with_offsets("[0,16]")).tensors().size(), 1u);
  EXPECT_THAT(refusal(with_offsets("[16,0]")), HasSubstr("data_offsets"));
  EXPECT_THAT(refusal(with_offsets("[0]")), HasSubstr("data_offsets"));
  EXPECT_THAT(refusal(with_offsets("[0,8,16]")), HasSubstr("data_offsets"));
  EXPECT_THAT(refusal(with_offsets("[-16,0]")), HasSubstr("data_offsets"));
  EXPECT_THAT(refusal(with_offsets("[0,16.0]")), HasSubstr("data_offsets"));
  EXPECT_THAT(refusal(with_offsets("null")), HasSubstr("data_offsets"));
  EXPECT_THAT(refusal(with_offsets("[9223372036854775792,9223372036854775807]")), HasSubstr("tensor a"));
  EXPECT_THAT(refusal(with_offsets("[1152921504606846976,1152921504606846992]")),
              AllOf(HasSubstr("truncated"), HasSubstr("1152921504606846976 bytes missing")));
}

TEST(Safetensors, RefusesUnknownTypesByName) {
  const auto with_dtype = [](const std::string& dtype) {
    return safetensors_file(R"({"a":{"dtype":)" + dtype + R"(,"shape":[16],"data_offsets":[0,16]}})",
                            kSixteen);
  };
  EXPECT_THAT(refusal(with_dtype("\"F8_E4M3\"")), AllOf(HasSubstr("tensor a"), HasSubstr("dtype F8_E4M3")));
  EXPECT_THAT(refusal(with_dtype("\"u8\"")), HasSubstr("dtype u8"));
  EXPECT_THAT(refusal(with_dtype("7")), HasSubstr("dtype is missing or no string"));
  EXPECT_THAT(refusal(safetensors_file(R"({"a":{"shape":[16],"data_offsets":[0,16]}})", kSixteen)),
              HasSubstr("dtype is missing"));
}

TEST(Safetensors, RefusesHeadersThatAreNoObjectOfTensors) {
  EXPECT_THAT(refusal(safetensors_file("", "")), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal(safetensors_file("[]", "")), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal(safetensors_file(" {}", "")), HasSubstr("no JSON object"));
  EXPECT_THAT(refusal(safetensors_file("{\"a\":", "")), HasSubstr("malformed JSON"));
  EXPECT_THAT(refusal(safetensors_file(R"({"a":[]})", "")),
              HasSubstr("tensor a: an object expected, array found"));
  EXPECT_THAT(refusal(safetensors_file(R"({"__metadata__":{"format":1}})", "")), HasSubstr("__metadata__"));
  EXPECT_THAT(refusal(safetensors_file(R"({"__metadata__":null})", "")), HasSubstr("__metadata__"));
}

TEST(Safetensors, RefusesNestingBombs) {
  const std::string bomb = R"({"a":)" + std::string(100000, '[');
  EXPECT_THAT(refusal(safetensors_file(bomb, "")), HasSubstr("nested deeper"));
}

TEST(Safetensors, EscapesNamesInMessages) {
  const std::string name = R"(\u001b]8;;http://x\u001b\\)";
  const std::string header = R"({")" + name + R"(":{"dtype":"\u001b[2J","shape":[4],"data_offsets":[0,16]}})";
  EXPECT_THAT(refusal(safetensors_file(header, kSixteen)),
              AllOf(Not(HasSubstr("\x1b")), HasSubstr("\\x1B]8;;http://x"), HasSubstr("\\x1B[2J")));
  const std::string sound = R"({")" + name + R"(":{"dtype":"F32","shape":[4],"data_offsets":[0,16]}})";
  const std::string cut = safetensors_file(sound, kSixteen);
  EXPECT_THAT(refusal(cut.substr(0, cut.size() - 1)), AllOf(Not(HasSubstr("\x1b")), HasSubstr("\\x1B]8;;")));
  EXPECT_THAT(refusal(cut + "x"), Not(HasSubstr("\x1b")));
}

TEST(Safetensors, CopiesWhatAFileHasAtOddAddresses) {
  // One byte of padding less puts every tensor at an odd address.
  const std::string header =
      R"({"b":{"dtype":"U8","shape":[3],"data_offsets":[0,3]},"w":{"dtype":"F32","shape":[2],"data_offsets":[3,11]},)"
      R"("h":{"dtype":"BF16","shape":[1],"data_offsets":[11,13]}})";
  for (std::size_t padding = 0; padding < 8; ++padding) {
    const std::string file = safetensors_file(header, header.size() + padding, "abc12345678hi");
    const Checkpoint checkpoint = load(file);
    EXPECT_EQ(as_text(checkpoint.find("b")->data), "abc");
    EXPECT_EQ(as_text(checkpoint.find("w")->data), "12345678");
    EXPECT_EQ(as_text(checkpoint.find("h")->data), "hi");
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(checkpoint.find("w")->data.data()) % 4, 0u);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(checkpoint.find("h")->data.data()) % 2, 0u);
  }
}

TEST(Safetensors, LeavesAlignedTensorsWhereTheyAre) {
  const std::string file = safetensors_file(kOne, 64, kSixteen);
  const Checkpoint checkpoint = load(file);
  EXPECT_EQ(as_text(checkpoint.find("a")->data).data(), file.data() + 72);
}

TEST(Safetensors, KnowsAPointerFileOfGitLfs) {
  EXPECT_THAT(refusal("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"),
              HasSubstr("git lfs pull"));
}

TEST(Checkpoint, RequireGivesMatricesAndVectors) {
  const std::string header =
      R"({"m":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},"v":{"dtype":"F16","shape":[4],"data_offsets":[24,32]}})";
  const std::string file = safetensors_file(header, 128, "000011112222333344445555vvvvvvvv");
  const Checkpoint checkpoint = load(file);
  const TensorView m = checkpoint.require("m", {3, 2});
  EXPECT_EQ(m.rows, 3);
  EXPECT_EQ(m.cols, 2);
  EXPECT_EQ(m.stride, 8);
  EXPECT_EQ(std::memcmp(m.row(2), "44445555", 8), 0);
  const TensorView v = checkpoint.require("v", {4});
  EXPECT_EQ(v.rows, 1);
  EXPECT_EQ(v.cols, 4);
  EXPECT_EQ(v.dtype, DType::f16);
  EXPECT_EQ(v.bytes(), 8);
}

TEST(Checkpoint, RequireNamesBothShapes) {
  const std::string header =
      R"({"m":{"dtype":"F32","shape":[3,2],"data_offsets":[0,24]},"d":{"dtype":"F64","shape":[1],"data_offsets":[24,32]}})";
  const std::string file = safetensors_file(header, 128, std::string(32, '\0'));
  const Checkpoint checkpoint = load(file);
  EXPECT_THAT(
      error_of([&] {
        (void)checkpoint.require("m", {2, 3});
      }),
      AllOf(HasSubstr("m.safetensors: tensor m"), HasSubstr("[2, 3] expected"), HasSubstr("[3, 2] found")));
  EXPECT_THAT(error_of([&] { (void)checkpoint.require("m", {6}); }), HasSubstr("[6] expected"));
  EXPECT_THAT(error_of([&] { (void)checkpoint.require("n", {6}); }),
              AllOf(HasSubstr("m.safetensors: tensor n"), HasSubstr("missing")));
  EXPECT_THAT(error_of([&] { (void)checkpoint.require("d", {1}); }), HasSubstr("F64 found"));
}

}  // namespace
}  // namespace qgen
