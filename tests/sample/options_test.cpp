#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "qgen/base/error.h"
#include "qgen/sample/sampler.h"

namespace qgen {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string complaint(const SamplingOptions& options) {
  try {
    const Sampler sampler(options);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::usage);
    return error.what();
  }
  return "";
}

template <class T>
std::string complaint_about(T SamplingOptions::*field, T value) {
  SamplingOptions options;
  options.*field = value;
  return complaint(options);
}

TEST(SamplingOptionsCheck, RefusesValuesOutOfRangeAndStatesTheRange) {
  using O = SamplingOptions;
  EXPECT_EQ(complaint_about(&O::top_p, 1.5), "--top-p is 1.5, expected a number from 0 to 1");
  EXPECT_EQ(complaint_about(&O::temperature, -1.0), "--temperature is -1, expected a number from 0 to 1000");
  EXPECT_THAT(complaint_about(&O::top_k, std::int64_t{-2}),
              HasSubstr("--top-k is -2, expected a number from -1 to"));
  EXPECT_THAT(complaint_about(&O::min_p, -0.1), HasSubstr("from 0 to 1"));
  EXPECT_THAT(complaint_about(&O::repetition_penalty, 0.0), HasSubstr("from 0.01 to 100"));
  EXPECT_THAT(complaint_about(&O::presence_penalty, 2.5), HasSubstr("from -2 to 2"));
  EXPECT_THAT(complaint_about(&O::frequency_penalty, -2.5), HasSubstr("from -2 to 2"));
  EXPECT_THAT(complaint_about(&O::penalty_window, std::int64_t{-5}), HasSubstr("from -1 to"));
}

TEST(SamplingOptionsCheck, RefusesWhatIsNoFiniteNumber) {
  for (const double bad : {std::nan(""), std::numeric_limits<double>::infinity()}) {
    EXPECT_NE(complaint_about(&SamplingOptions::temperature, bad), "");
    EXPECT_NE(complaint_about(&SamplingOptions::top_p, bad), "");
    EXPECT_NE(complaint_about(&SamplingOptions::repetition_penalty, bad), "");
  }
}

TEST(SamplingOptionsCheck, AcceptsTheEndsOfEveryRange) {
  for (const SamplingOptionRow& row : sampling_option_rows()) {
    for (const double end : {row.low, row.high}) {
      SamplingOptions options;
      if (const auto* real = std::get_if<double SamplingOptions::*>(&row.field)) {
        options.*(*real) = end;
      } else {
        options.*std::get<std::int64_t SamplingOptions::*>(row.field) = static_cast<std::int64_t>(end);
      }
      EXPECT_EQ(complaint(options), "") << row.name << ' ' << end;
    }
  }
}

TEST(SamplerOrder, RefusesUnknownAndRepeatedSteps) {
  SamplingOptions options;
  options.order = {"top_k", "typical\x1b"};
  EXPECT_EQ(complaint(options),
            "unknown sampler step 'typical\\x1B': the steps are penalties, temperature, top_k, top_p, min_p");
  options.order = {"top-k", "top_k"};
  EXPECT_EQ(complaint(options), "sampler step 'top_k' is named twice");
  options.order = {"min-p", "top-p", "top-k", "temperature", "penalties"};
  EXPECT_EQ(complaint(options), "");
}

TEST(SamplerSteps, AreListedInTheDefaultOrder) {
  const auto names = sampler_step_names();
  EXPECT_THAT(std::vector<std::string_view>(names.begin(), names.end()),
              ElementsAre("penalties", "temperature", "top_k", "top_p", "min_p"));
}

TEST(SamplingOptionRows, DefaultsAreThoseOfTheContract) {
  const SamplingOptions options;
  EXPECT_EQ(options.temperature, 0.8);
  EXPECT_EQ(options.top_p, 0.95);
  EXPECT_EQ(options.top_k, 0);
  EXPECT_EQ(options.min_p, 0);
  EXPECT_EQ(options.repetition_penalty, 1);
}

}  // namespace
}  // namespace qgen
