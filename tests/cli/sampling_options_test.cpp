#include "cli/options/sampling_options.h"

#include <gmock/gmock.h>

#include "cli/options/option_set.h"
#include "qgen/base/error.h"

namespace qgen::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::ThrowsMessage;

SamplingOptions resolve(const std::vector<std::string>& arguments, const GenerationConfig& model = {}) {
  SamplingChoice choice;
  OptionSet set("", "");
  set.group("Sampling");
  declare_sampling(set, choice);
  EXPECT_TRUE(set.read(arguments));
  return resolve_sampling(choice, model);
}

GenerationConfig model_with(double temperature, std::int64_t top_k) {
  GenerationConfig model;
  model.temperature = temperature;
  model.top_k = top_k;
  return model;
}

TEST(SamplingOptionsOfCli, DefaultsWithoutAnything) {
  const SamplingOptions options = resolve({});
  EXPECT_EQ(options.temperature, 0.8);
  EXPECT_EQ(options.top_p, 0.95);
  EXPECT_EQ(options.top_k, 0);
  EXPECT_EQ(options.min_p, 0);
  EXPECT_EQ(options.repetition_penalty, 1);
}

TEST(SamplingOptionsOfCli, EachKeyComesFromTheFirstPlaceThatHasIt) {
  const SamplingOptions options = resolve({"--temp", "1.5"}, model_with(0.6, 20));
  EXPECT_EQ(options.temperature, 1.5);
  EXPECT_EQ(options.top_k, 20);
  EXPECT_EQ(options.top_p, 0.95);
}

TEST(SamplingOptionsOfCli, EveryRowHasItsOption) {
  const SamplingOptions options =
      resolve({"--temperature=0.5", "--top_k=7", "--top-p=0.25", "--min_p=0.125", "--repeat-penalty=1.25",
               "--presence_penalty=0.75", "--frequency-penalty=-0.5"});
  EXPECT_EQ(options.temperature, 0.5);
  EXPECT_EQ(options.top_k, 7);
  EXPECT_EQ(options.top_p, 0.25);
  EXPECT_EQ(options.min_p, 0.125);
  EXPECT_EQ(options.repetition_penalty, 1.25);
  EXPECT_EQ(options.presence_penalty, 0.75);
  EXPECT_EQ(options.frequency_penalty, -0.5);
}

TEST(SamplingOptionsOfCli, LastOfARepeatedOptionCounts) {
  EXPECT_EQ(resolve({"--temp", "0.1", "--temperature", "0.2"}).temperature, 0.2);
}

TEST(SamplingOptionsOfCli, DoSampleFalseIsGreedyUnlessSamplingIsAskedFor) {
  GenerationConfig model = model_with(0.6, 20);
  model.do_sample = false;
  EXPECT_EQ(resolve({}, model).temperature, 0);
  EXPECT_EQ(resolve({"--seed", "5"}, model).temperature, 0);
  EXPECT_EQ(resolve({"--top-p", "0.5"}, model).temperature, 0.6);
  EXPECT_EQ(resolve({"--preset", "factual"}, model).temperature, 0.3);
  model.temperature.reset();
  EXPECT_EQ(resolve({"--top-p", "0.5"}, model).temperature, 0.8);
}

TEST(SamplingOptionsOfCli, PresetsAreBetweenOptionsAndTheModel) {
  const SamplingOptions code = resolve({"--preset", "code"}, model_with(0.6, 20));
  EXPECT_EQ(code.temperature, 0.2);
  EXPECT_EQ(code.top_k, 40);
  const SamplingOptions creative = resolve({"--temp", "1", "--preset", "creative"});
  EXPECT_EQ(creative.temperature, 1);
  EXPECT_EQ(creative.top_p, 0.9);
}

TEST(SamplingOptionsOfCli, GreedyIsTemperatureZero) {
  EXPECT_EQ(resolve({"--greedy", "--temp", "0.9"}).temperature, 0);
}

TEST(SamplingOptionsOfCli, OrderIsCheckedAndAcceptsDashes) {
  EXPECT_THAT(resolve({"--sampler-order", "top-k,temperature"}).order,
              ::testing::ElementsAre("top_k", "temperature"));
  EXPECT_THAT([] { resolve({"--sampler-order", "top_q"}); }, ThrowsMessage<Error>(HasSubstr("top_p")));
}

TEST(SamplingOptionsOfCli, SeedsAreTakenOrRandom) {
  EXPECT_EQ(resolve({"--seed", "18446744073709551615"}).seed, 18446744073709551615U);
  EXPECT_EQ(resolve({"-s", "0"}).seed, 0U);
  // Four random seeds of 32 bits are all equal once in 2^96 runs.
  const std::uint64_t first = resolve({}).seed;
  EXPECT_TRUE(resolve({}).seed != first || resolve({}).seed != first || resolve({}).seed != first);
}

TEST(SamplingOptionsOfCli, ValuesOfTheModelAreChecked) {
  GenerationConfig model;
  model.top_p = 1.5;
  EXPECT_THAT([&] { resolve({}, model); }, ThrowsMessage<Error>(AllOf(HasSubstr("generation_config.json"),
                                                                      HasSubstr("top_p"), HasSubstr("1.5"))));
}

}  // namespace
}  // namespace qgen::cli
