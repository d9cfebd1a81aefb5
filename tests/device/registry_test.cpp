#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "qgen/base/error.h"
#include "qgen/device/device.h"
#include "support/error_of.h"
#include "support/random_model.h"

namespace qgen {
namespace {

ErrorKind refusal(std::string_view name, std::string_view part) {
  const test::RandomModel model({});
  try {
    (void)find_device(name, model.plan());
  } catch (const Error& error) {
    EXPECT_THAT(std::string(error.what()), testing::HasSubstr(std::string(part)));
    return error.kind();
  }
  ADD_FAILURE() << name << " was accepted";
  return ErrorKind::file;
}

TEST(FindDevice, FindsByNameAndNeverChoosesTheReferenceByItself) {
  const test::RandomModel model({});
  EXPECT_EQ(find_device("cpu", model.plan()).name(), "cpu");
  EXPECT_EQ(find_device("reference", model.plan()).name(), "reference");
  EXPECT_NE(find_device("auto", model.plan()).name(), "reference");
}

TEST(FindDevice, TellsAnUnknownNameFromADeviceThatIsNotBuilt) {
  EXPECT_EQ(refusal("abacus", "unknown device 'abacus'; there are auto, "), ErrorKind::usage);
  for (const Device* device : devices()) {
    if (device->name() == "cuda") GTEST_SKIP() << "cuda is in this build";
  }
  EXPECT_EQ(refusal("cuda", "not in this build"), ErrorKind::device);
}

TEST(CompileForCpu, RefusesUnknownKernelsAndCacheTypes) {
  const test::RandomModel model({});
  DeviceOptions options;
  options.threads = 1;
  options.kernels = "quantum";
  EXPECT_THROW((void)find_device("cpu", model.plan()).compile(model.plan(), options), Error);
  options.kernels = "scalar";
  options.kv = "q1";
  EXPECT_THROW((void)find_device("cpu", model.plan()).compile(model.plan(), options), Error);
  options.kv = "auto";
  options.weights = "q5";
  EXPECT_THROW((void)find_device("cpu", model.plan()).compile(model.plan(), options), Error);
}

TEST(CompileForCpu, HoldsWeightsAsAsked) {
  const test::RandomModel model({});
  for (const char* type : {"bf16", "q8", "q4"}) {
    DeviceOptions options;
    options.threads = 1;
    options.weights = type;
    EXPECT_EQ(find_device("cpu", model.plan()).compile(model.plan(), options)->weight_type(), type);
  }
}

TEST(CompileForCpu, NamesTheTypeOfMostWeights) {
  test::ModelShape shape;
  shape.dims.layers = 1;
  shape.dtypes.assign(14, DType::bf16);
  shape.dtypes[2] = DType::f32;  // q_proj, the first matrix that is multiplied by
  const test::RandomModel model(shape);
  DeviceOptions options;
  options.threads = 1;
  EXPECT_EQ(find_device("cpu", model.plan()).compile(model.plan(), options)->weight_type(), "bf16");
}

TEST(CompileForCpu, HoldsBlocksAsTheFileDoesUnlessAskedOtherwise) {
  const struct {
    DType dtype;
    const char* held;
  } types[] = {{DType::q8_0, "q8"}, {DType::q4_0, "q4"}, {DType::q4_k, "q4_k"}, {DType::q6_k, "q6_k"}};
  for (const auto& [dtype, held] : types) {
    test::ModelShape shape;
    shape.dims.width = shape.dims.feed_forward = 256;
    shape.dims.head_dim = 64;
    shape.dtypes = {dtype};
    const test::RandomModel model(shape);
    DeviceOptions options;
    options.threads = 2;
    EXPECT_EQ(find_device("cpu", model.plan()).compile(model.plan(), options)->weight_type(), held);
    options.weights = "bf16";
    EXPECT_EQ(find_device("cpu", model.plan()).compile(model.plan(), options)->weight_type(), "bf16");
    options.weights = held;
    if (std::string_view(held).size() == 2) {
      EXPECT_EQ(find_device("cpu", model.plan()).compile(model.plan(), options)->weight_type(), held);
    } else {
      EXPECT_THROW((void)find_device("cpu", model.plan()).compile(model.plan(), options), Error);
    }
  }
}

TEST(HeldBits, AreThoseOfTheTypeAskedForOrOfTheFile) {
  EXPECT_EQ(held_bits(DType::f32, "auto"), 32);
  EXPECT_EQ(held_bits(DType::q4_k, "auto"), 4.625);
  EXPECT_EQ(held_bits(DType::q3_k, "auto"), 6.5625);
  EXPECT_EQ(held_bits(DType::q5_k, "auto"), 8.5);
  EXPECT_EQ(held_bits(DType::q4_k, "q8"), 8.5);
  EXPECT_EQ(held_bits(DType::q8_0, "bf16"), 16);
}

TEST(CompileForReference, HoldsWeightsAsTheFileDoes) {
  const test::RandomModel model({});
  DeviceOptions options;
  EXPECT_EQ(find_device("reference", model.plan()).compile(model.plan(), options)->weight_type(), "f32");
  options.weights = "q8";
  EXPECT_THROW((void)find_device("reference", model.plan()).compile(model.plan(), options), Error);
}

TEST(CompileForReference, RefusesWhatItWouldIgnore) {
  const test::RandomModel model({});
  const Device& reference = find_device("reference", model.plan());
  DeviceOptions options;
  const auto compile = [&] { (void)reference.compile(model.plan(), options); };
  options.kernels = "scalar";  // as every step that is computed plainly asks for
  EXPECT_NO_THROW(compile());
  options.kernels = "avx2";
  EXPECT_THAT(test::error_of(compile, ErrorKind::device), testing::HasSubstr("avx2"));
  options.kernels = "";
  options.kv = "q8";
  EXPECT_THAT(test::error_of(compile, ErrorKind::device), testing::HasSubstr("q8"));
}

TEST(CompileForCpu, ForcedKernelsAreTheActiveOnes) {
  const test::RandomModel model({});
  DeviceOptions options;
  options.threads = 2;
  options.kernels = "scalar";
  options.kv = "bf16";
  EXPECT_EQ(find_device("cpu", model.plan()).compile(model.plan(), options)->description(),
            "cpu: scalar kernels, 2 threads, f32 weights, bf16 cache");
}

}  // namespace
}  // namespace qgen
