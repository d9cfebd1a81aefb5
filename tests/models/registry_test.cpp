#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "qgen/models/architecture.h"
#include "support/error_of.h"

namespace qgen {
namespace {

using test::error_of;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

TEST(Architectures, OneFamilyReadsFiveTypes) {
  EXPECT_THAT(find_architecture("qwen3", "c").model_types(),
              UnorderedElementsAre("qwen3", "qwen3_moe", "qwen2", "llama", "mistral"));
  for (const char* type : {"qwen3_moe", "qwen2", "llama", "mistral"}) {
    EXPECT_EQ(&find_architecture(type, "c"), &find_architecture("qwen3", "c"));
  }
}

TEST(Architectures, AnUnknownTypeIsRefusedByNameWithTheSortedListOfThoseSupported) {
  ModelConfig config;
  config.source = "m/config.json";
  config.model_type = "gemma9\x1b[2J";
  EXPECT_THAT(error_of([&] { (void)find_architecture(config); }, ErrorKind::unsupported),
              AllOf(HasSubstr("m/config.json"), HasSubstr("gemma9\\x1B[2J"), Not(HasSubstr("\x1b")),
                    HasSubstr("llama, mistral, qwen2, qwen3, qwen3_moe")));
}

TEST(Architectures, AMissingTypeIsRefused) {
  EXPECT_THAT(error_of([] { (void)find_architecture(ModelConfig{}); }, ErrorKind::unsupported),
              AllOf(HasSubstr("model_type"), HasSubstr("nothing found")));
}

}  // namespace
}  // namespace qgen
