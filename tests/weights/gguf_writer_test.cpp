#include "qgen/weights/gguf_writer.h"

#include <gmock/gmock.h>

#include <array>
#include <cstring>
#include <numeric>

#include "qgen/base/mapped_file.h"
#include "qgen/tensor/block_format.h"
#include "support/files.h"

namespace qgen {
namespace {

using test::read_file;
using test::TempFolder;

/// What tools/reference/gguf_writer.py tells the gguf package to write.
GgufHeader reference_header() {
  GgufHeader header;
  header.add("general.architecture", "test");
  header.add("a.u8", std::uint8_t{200});
  header.add("a.i8", std::int8_t{-100});
  header.add("a.u16", std::uint16_t{60000});
  header.add("a.i16", std::int16_t{-30000});
  header.add("a.u32", std::uint32_t{4'000'000'000});
  header.add("a.i32", std::int32_t{-2'000'000'000});
  header.add("a.f32", 1.5f);
  header.add("a.bool", true);
  header.add("a.text", "Grüße");
  header.add("a.u64", std::uint64_t{1} << 63);
  header.add("a.i64", -(std::int64_t{1} << 62));
  header.add("a.f64", 0.1);
  header.add("a.texts", std::vector<std::string>{"a", "", "bcd"});
  header.add("a.numbers", std::vector<std::int32_t>{1, -2, 3});
  header.add("a.reals", std::vector<float>{0.5f, -0.25f});
  header.add_tensor("matrix", DType::f32, {3, 4});
  header.add_tensor("vector", DType::f16, {3});
  header.add_tensor("blocks", DType::q8_0, {2, 2, 32});
  return header;
}

std::vector<std::byte> converted(DType dtype, const std::vector<float>& values) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(row_bytes(dtype, std::ssize(values))));
  quantizer(dtype)(values.data(), std::ssize(values), bytes.data());
  return bytes;
}

std::vector<float> counting(std::size_t count, float first) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), first);
  return values;
}

TEST(GgufWriter, GivesTheBytesOfTheGgufPackage) {
  const TempFolder folder;
  GgufWriter writer(folder.path() / "out.gguf", reference_header());
  const std::vector<std::byte> matrix = converted(DType::f32, counting(12, 0));
  writer.write(Bytes(matrix).first(20));
  writer.write(Bytes(matrix).subspan(20));
  writer.write(converted(DType::f16, {1, -2, 0.5f}));
  writer.write(converted(DType::q8_0, counting(128, -50)));
  EXPECT_FALSE(std::filesystem::exists(folder.path() / "out.gguf"));
  writer.finish();
  EXPECT_EQ(read_file(folder.path() / "out.gguf"), read_file(QGEN_TEST_DATA "/weights/written.gguf"));
}

TEST(GgufWriter, PassesOnWhatTheReaderFinds) {
  const TempFolder folder;
  const Gguf original = Gguf::open(QGEN_TEST_DATA "/weights/written.gguf");
  GgufHeader header;
  for (const auto& [key, value] : original.metadata().entries()) header.add(key, value);
  header.add("a.text", "other");
  for (const GgufTensor& tensor : original.tensors()) {
    header.add_tensor(tensor.name, tensor.tensor.dtype, tensor.tensor.shape);
  }
  GgufWriter writer(folder.path() / "out.gguf", header);
  for (const GgufTensor& tensor : original.tensors()) writer.write(tensor.tensor.data);
  writer.finish();

  const Gguf copy = Gguf::open(folder.path() / "out.gguf");
  EXPECT_EQ(copy.metadata().text("a.text"), "other");
  ASSERT_EQ(copy.metadata().entries().size(), original.metadata().entries().size());
  for (const auto& [key, value] : original.metadata().entries()) {
    if (key == "a.text") continue;
    const GgufValue* found = copy.metadata().find(key);
    ASSERT_NE(found, nullptr) << key;
    EXPECT_EQ(found->type, value.type) << key;
    EXPECT_EQ(as_text(found->bytes), as_text(value.bytes)) << key;
  }
  ASSERT_EQ(copy.tensors().size(), 3u);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(as_text(copy.tensors()[i].tensor.data), as_text(original.tensors()[i].tensor.data));
  }
}

TEST(GgufWriter, LeavesNothingWithoutAnEnd) {
  const TempFolder folder;
  {
    GgufWriter(folder.path() / "out.gguf", reference_header()).write(converted(DType::f32, counting(12, 0)));
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.path()));
}

}  // namespace
}  // namespace qgen
