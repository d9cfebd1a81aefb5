#include "weights/torch/torch_file.h"

#include <gmock/gmock.h>

#include <cstring>
#include <limits>
#include <tuple>

#include "qgen/base/mapped_file.h"
#include "qgen/tensor/convert.h"
#include "support/error_of.h"
#include "support/files.h"
#include "support/torch_bytes.h"
#include "weights/torch/torch_dict.h"

namespace qgen::test {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string open_refusal(const std::string& file, ErrorKind kind = ErrorKind::file) {
  return error_of([&] { TorchFile(as_bytes(file), "x.pt"); }, kind);
}

/// The tensors that torch.save wrote; see tools/reference/torch_golden.py.
class TorchTensors : public ::testing::Test {
 protected:
  [[nodiscard]] const PickleValue& value(std::string_view name) const {
    return *find_member(*dict_members(file_.pickle(), file_.pickle()[file_.pickle().root]), name);
  }
  StoredTensor tensor(std::string_view name) { return file_.tensor(value(name), name, copies_); }
  static std::vector<float> floats(const StoredTensor& tensor) {
    std::vector<float> values(tensor.data.size() / sizeof(float));
    std::memcpy(values.data(), tensor.data.data(), tensor.data.size());
    return values;
  }

  MappedFile mapped_{std::string(QGEN_TEST_DATA) + "/golden/torch/tensors.pt"};
  TorchFile file_{mapped_.bytes(), "x.pt"};
  TensorCopies copies_;
};

TEST_F(TorchTensors, ContiguousOnesStayWhereTheyAre) {
  const StoredTensor plain = tensor("plain");
  EXPECT_EQ(plain.dtype, DType::f32);
  EXPECT_THAT(plain.shape, ElementsAre(3, 4));
  EXPECT_THAT(floats(plain), ElementsAre(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11));
  const StoredTensor row = tensor("row");
  EXPECT_THAT(floats(row), ElementsAre(4, 5, 6, 7));
  EXPECT_EQ(row.data.data(), plain.data.data() + 16) << "one storage for both";
  EXPECT_EQ(copies_.bytes, 0U);
}

TEST_F(TorchTensors, OtherLayoutsAreCopied) {
  const StoredTensor transposed = tensor("transposed");
  EXPECT_THAT(transposed.shape, ElementsAre(4, 3));
  EXPECT_THAT(floats(transposed), ElementsAre(0, 4, 8, 1, 5, 9, 2, 6, 10, 3, 7, 11));
  EXPECT_THAT(floats(tensor("column")), ElementsAre(2, 6, 10));
  EXPECT_EQ(copies_.bytes, 48U + 12U);
}

TEST_F(TorchTensors, TypesAndShapes) {
  EXPECT_EQ(tensor("bf16").dtype, DType::bf16);
  EXPECT_EQ(tensor("f64").dtype, DType::f64);
  EXPECT_TRUE(tensor("scalar").shape.empty());
  EXPECT_THAT(floats(tensor("scalar")), ElementsAre(7));
  EXPECT_THAT(tensor("empty").shape, ElementsAre(0, 3));
  EXPECT_EQ(tensor("empty").data.size(), 0U);
  EXPECT_THAT(floats(tensor("parameter")), ElementsAre(1, 1));
  const StoredTensor odd = tensor("odd");
  std::uint16_t half = 0;
  std::memcpy(&half, odd.data.data() + 4, 2);
  EXPECT_EQ(f16_to_f32(half), 3);
}

TEST_F(TorchTensors, EveryPrefixOfTheFileIsRefused) {
  const std::string bytes(as_text(mapped_.bytes()));
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_THAT(open_refusal(bytes.substr(0, size)), HasSubstr("x.pt")) << size;
  }
}

std::string file_with(const std::string& root, const std::string& storage) {
  ZipBytes zip;
  zip.add("a/data.pkl", pickle(root));
  zip.add("a/data/0", storage);
  return zip.file();
}

/// The message that tells why a tensor is refused; its storage has 6 elements of 4 bytes.
std::string refusal(const std::string& tensor) {
  const std::string bytes = file_with(tensor, std::string(24, '\0'));
  const TorchFile file(as_bytes(bytes), "x.pt");
  return error_of([&] {
    TensorCopies copies;
    (void)file.tensor(file.pickle()[file.pickle().root], "w", copies);
  });
}

TensorBytes sound() {
  return {.elements = 6, .shape = {2, 3}, .strides = {3, 1}};
}

TEST(TorchFileTensors, ReachBeyondTheStorage) {
  TensorBytes tensor = sound();
  tensor.offset = 1;
  EXPECT_THAT(refusal(tensor.pickle()), AllOf(HasSubstr("tensor w"), HasSubstr("beyond its storage of 6")));
  tensor = sound();
  tensor.strides = {4, 1};
  EXPECT_THAT(refusal(tensor.pickle()), HasSubstr("beyond its storage"));
  tensor = sound();
  tensor.shape = {3, 3};
  EXPECT_THAT(refusal(tensor.pickle()), HasSubstr("beyond its storage"));
}

TEST(TorchFileTensors, NumbersThatOverflowOrAreNegative) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  for (const auto& [shape, strides, offset] :
       std::vector<std::tuple<std::vector<std::int64_t>, std::vector<std::int64_t>, std::int64_t>>{
           {{std::int64_t{1} << 32, std::int64_t{1} << 32}, {1, 1}, 0},
           {{3, 3}, {kMost, kMost}, 0},
           {{2}, {kMost}, kMost},
           {{2}, {1}, kMost}}) {
    EXPECT_THAT(
        refusal(TensorBytes{.elements = 6, .offset = offset, .shape = shape, .strides = strides}.pickle()),
        HasSubstr("overflow"));
  }
  EXPECT_THAT(refusal(TensorBytes{.elements = 6, .shape = {-2, 3}, .strides = {3, 1}}.pickle()),
              HasSubstr("-2"));
  EXPECT_THAT(refusal(TensorBytes{.elements = 6, .shape = {2, 3}, .strides = {3, -1}}.pickle()),
              HasSubstr("-1"));
  EXPECT_THAT(refusal(TensorBytes{.elements = 6, .offset = -1, .shape = {2}, .strides = {1}}.pickle()),
              HasSubstr("offset"));
  EXPECT_THAT(refusal(TensorBytes{.elements = 6, .shape = {2, 3}, .strides = {1}}.pickle()),
              HasSubstr("stride"));
}

TEST(TorchFileTensors, ExpandedOnesAreRefusedBeforeTheyTakeMemory) {
  EXPECT_THAT(refusal(TensorBytes{.elements = 6, .shape = {std::int64_t{1} << 40}, .strides = {0}}.pickle()),
              HasSubstr("repeat elements"));
}

TEST(TorchFileTensors, StoragesThatDoNotFit) {
  TensorBytes tensor = sound();
  tensor.elements = 7;
  EXPECT_THAT(refusal(tensor.pickle()), AllOf(HasSubstr("7 elements of F32"), HasSubstr("24 bytes")));
  tensor.elements = (std::int64_t{1} << 62) + 6;  // times 4 it is 24 in 64 bits
  EXPECT_THAT(refusal(tensor.pickle()), HasSubstr("24 bytes"));
  tensor = sound();
  tensor.key = "../secret";
  EXPECT_THAT(refusal(tensor.pickle()), HasSubstr("data/../secret is missing"));
  tensor = sound();
  tensor.type = "ComplexFloatStorage";
  EXPECT_THAT(refusal(tensor.pickle()), HasSubstr("torch.ComplexFloatStorage"));
}

TEST(TorchFileTensors, OtherThingsInTheirPlace) {
  EXPECT_THAT(refusal("K\x01"), HasSubstr("a tensor expected, 1 found"));
  EXPECT_THAT(refusal(pickled_call(pickled_global("os", "system"), {pickled_text("x")})),
              HasSubstr("a tensor expected, an object made by os.system found"));
  EXPECT_THAT(refusal(pickled_call(pickled_global("torch._utils", "_rebuild_tensor_v2"), {})),
              HasSubstr("storage"));
  EXPECT_THAT(refusal(pickled_call(pickled_global("torch._utils", "_rebuild_parameter"), {})),
              HasSubstr("a tensor expected"));
}

TEST(TorchFileTensors, CopiesTakeNoMoreThanTheFile) {
  const std::string transposed = TensorBytes{.elements = 600, .shape = {20, 30}, .strides = {1, 20}}.pickle();
  const std::string bytes = file_with(transposed, std::string(2400, '\0'));
  const TorchFile file(as_bytes(bytes), "x.pt");
  TensorCopies copies;
  const PickleValue& value = file.pickle()[file.pickle().root];
  (void)file.tensor(value, "w", copies);
  EXPECT_THAT(error_of([&] { (void)file.tensor(value, "w", copies); }), HasSubstr("more than the file"));
}

TEST(TorchFileKinds, OtherFilesAreToldApart) {
  EXPECT_THAT(open_refusal("version https://git-lfs.github.com/spec/v1"), HasSubstr("git lfs pull"));
  EXPECT_THAT(open_refusal(std::string("GGUF\3\0\0\0", 8), ErrorKind::unsupported), HasSubstr("-m"));
  EXPECT_THAT(open_refusal("\x80\x02\x8a\x0a", ErrorKind::unsupported), HasSubstr("before version 1.6"));
  EXPECT_THAT(open_refusal("hello"), HasSubstr("not a zip archive"));
  ZipBytes other;
  other.add("word/document.xml", "x");
  EXPECT_THAT(open_refusal(other.file()), HasSubstr("data.pkl"));
}

TEST(TorchFileKinds, BigEndianFilesAreNamed) {
  ZipBytes big;
  big.add("a/data.pkl", pickle("N"));
  big.add("a/byteorder", "big");
  EXPECT_THAT(open_refusal(big.file(), ErrorKind::unsupported),
              AllOf(HasSubstr("byteorder"), HasSubstr("big")));
}

}  // namespace
}  // namespace qgen::test
