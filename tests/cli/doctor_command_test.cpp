#include <gmock/gmock.h>

#include "cli/command.h"

namespace qgen::test {
namespace {

using ::testing::HasSubstr;

TEST(DoctorCommand, TextTellsWhatIsChosenAndWhy) {
  const Result result = qgen({"doctor", "-t", "1"});
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.err, "");
  for (const std::string word :
       {"features", "kernels", "affinity", "quota", "memory", "GB/s", "device", "build"}) {
    EXPECT_THAT(result.out, HasSubstr(word));
  }
}

TEST(DoctorCommand, JsonHasTheAgreedFields) {
  const Result result = qgen({"doctor", "--json"});
  ASSERT_EQ(result.status, 0);
  const nlohmann::json report = json_of(result);
  EXPECT_TRUE(report["version"].is_string());
  EXPECT_TRUE(report["cpu"]["features"].is_array());
  EXPECT_TRUE(report["cpu"]["kernels"].is_string());
  EXPECT_GE(report["cpu"]["threads"], 1);
  EXPECT_TRUE(report["memory"].is_object());
  EXPECT_GT(report["read_bandwidth_gb_s"], 0);
  EXPECT_GT(report["peak_gflops"]["f32"], 0);
  EXPECT_TRUE(report["peak_gflops"].contains("bf16"));
  EXPECT_TRUE(report["peak_gflops"].contains("int8"));
  EXPECT_EQ(report["devices"].back()["name"], "reference");
  EXPECT_TRUE(report["devices"].back()["usable"]);
  EXPECT_TRUE(report["build"]["compiler"].is_string());
}

TEST(DoctorCommand, KernelsCanBeForced) {
  EXPECT_EQ(json_of(qgen({"doctor", "--json", "-t", "1", "--kernels", "scalar"}))["cpu"]["kernels"],
            "scalar");
  EXPECT_EQ(qgen({"doctor", "--kernels", "mmx"}).status, 2);
}

TEST(DoctorCommand, MeasuresLessWhereTheAddressSpaceIsLimited) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need an address space without limits";
  Launch launch = test::launch({"doctor", "--json", "-t", "1"});
  launch.address_space = std::size_t{150} << 20;
  const Result result = run(kQgen, launch);
  EXPECT_EQ(result.status, 0) << result.err;
  EXPECT_GT(json_of(result)["read_bandwidth_gb_s"], 0);
}

}  // namespace
}  // namespace qgen::test
