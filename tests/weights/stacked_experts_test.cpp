#include "weights/stacked_experts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>

#include "support/error_of.h"
#include "support/files.h"
#include "support/safetensors_bytes.h"

namespace qgen {
namespace {

using test::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kGateUp = "l.mlp.experts.gate_up_proj";
constexpr const char* kDown = "l.mlp.experts.down_proj";

/// A tensor of bytes 0, 1, 2, ... called I8 so that an element is a byte.
StoredTensor counting(std::vector<std::int64_t> shape, std::vector<std::byte>& memory) {
  std::int64_t count = 1;
  for (const std::int64_t n : shape) count *= n;
  for (std::int64_t i = 0; i < count; ++i) memory.push_back(static_cast<std::byte>(i));
  return {DType::i8, std::move(shape), memory, "f"};
}

std::string refusal(const std::string& name, std::vector<std::int64_t> shape) {
  Checkpoint::Tensors tensors;
  std::vector<std::byte> memory;
  tensors.emplace(name, counting(std::move(shape), memory));
  return error_of([&] { split_stacked_experts(tensors); });
}

TEST(StackedExperts, BecomeOneTensorEach) {
  Checkpoint::Tensors tensors;
  std::vector<std::byte> gate_up, down;
  tensors.emplace(kGateUp, counting({3, 4, 5}, gate_up));
  tensors.emplace(kDown, counting({3, 5, 2}, down));
  tensors.emplace("l.mlp.gate.weight", StoredTensor{});
  split_stacked_experts(tensors);
  EXPECT_EQ(tensors.size(), 10u);
  const auto expect = [&](const std::string& name, const std::vector<std::int64_t>& shape, int first) {
    ASSERT_TRUE(tensors.contains(name)) << name;
    const StoredTensor& tensor = tensors.at(name);
    EXPECT_EQ(tensor.shape, shape) << name;
    EXPECT_EQ(std::ssize(tensor.data), shape[0] * shape[1]) << name;
    EXPECT_EQ(static_cast<int>(tensor.data[0]), first) << name;
    EXPECT_EQ(tensor.file, "f");
  };
  for (int e = 0; e < 3; ++e) {
    const std::string expert = "l.mlp.experts." + std::to_string(e);
    expect(expert + ".gate_proj.weight", {2, 5}, 20 * e);
    expect(expert + ".up_proj.weight", {2, 5}, 20 * e + 10);
    expect(expert + ".down_proj.weight", {5, 2}, 10 * e);
  }
}

TEST(StackedExperts, ExpertsThatAreSplitAlreadyStayAsTheyAre) {
  Checkpoint::Tensors tensors;
  tensors.emplace("l.mlp.experts.0.gate_proj.weight", StoredTensor{});
  tensors.emplace("l.mlp.experts.0.down_proj.weight", StoredTensor{});
  split_stacked_experts(tensors);
  EXPECT_EQ(tensors.size(), 2u);
}

TEST(StackedExperts, RefusesShapesThatAreNoStack) {
  EXPECT_THAT(refusal(kDown, {3, 4}),
              AllOf(HasSubstr("f: tensor " + std::string(kDown)), HasSubstr("[3, 4] found")));
  EXPECT_THAT(refusal(kGateUp, {1, 2, 3, 4}), HasSubstr("[1, 2, 3, 4] found"));
  EXPECT_THAT(refusal(kGateUp, {2, 3, 4}), HasSubstr("an even number of rows expected, [2, 3, 4] found"));
  // No byte each, but a tensor each.
  EXPECT_THAT(refusal(kDown, {std::int64_t{1} << 60, 0, 4}), HasSubstr("at most 65536"));
}

TEST(StackedExperts, RefusesAnExpertThatIsThereTwice) {
  Checkpoint::Tensors tensors;
  std::vector<std::byte> memory;
  tensors.emplace(kDown, counting({2, 2, 2}, memory));
  tensors.emplace("l.mlp.experts.1.down_proj.weight", StoredTensor{});
  EXPECT_THAT(error_of([&] { split_stacked_experts(tensors); }),
              AllOf(HasSubstr("l.mlp.experts.1.down_proj.weight"), HasSubstr("twice"), HasSubstr(kDown)));
}

TEST(StackedExperts, AnIndexOfShardsNamesTheStack) {
  test::TempFolder folder;
  test::SafetensorsWriter writer;
  writer.add(kDown, {2, 3, 4});
  test::write_file(folder.path() / "s1.safetensors", writer.file());
  test::write_file(folder.path() / "model.safetensors.index.json",
                   R"({"weight_map":{")" + std::string(kDown) + R"(":"s1.safetensors"}})");
  const Checkpoint checkpoint = Checkpoint::from_folder(folder.path());
  EXPECT_EQ(checkpoint.find(kDown), nullptr);
  EXPECT_EQ(checkpoint.require("l.mlp.experts.1.down_proj.weight", {3, 4}).rows, 3);
}

}  // namespace
}  // namespace qgen
