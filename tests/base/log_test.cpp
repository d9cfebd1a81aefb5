#include "qgen/base/log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <string>
#include <vector>

namespace qgen {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class LogTest : public ::testing::Test {
 protected:
  Log log(LogLevel least) {
    return {least, [this](std::string_view line) { lines.emplace_back(line); }};
  }
  static void say_all(const Log& log) {
    log.verbose("v");
    log.warning("w");
    log.error("e");
  }
  std::vector<std::string> lines;
};

TEST_F(LogTest, PassesOnWhatMattersEnough) {
  say_all(log(LogLevel::verbose));
  EXPECT_THAT(lines, ElementsAre("qgen: v\n", "qgen: w\n", "qgen: e\n"));
  lines.clear();
  say_all(log(LogLevel::warning));
  EXPECT_THAT(lines, ElementsAre("qgen: w\n", "qgen: e\n"));
  lines.clear();
  say_all(log(LogLevel::error));
  EXPECT_THAT(lines, ElementsAre("qgen: e\n"));
}

TEST_F(LogTest, LinesAreSafeToPrintAndOtherwiseAsTheyAre) {
  const Log any = log(LogLevel::error);
  any.error("a\nb\x1b[2J \xff");
  any.error("{} {0} %v %n \xe5\x8d\x95");
  any.error("");
  const std::string longer(100'000, 'x');
  any.error(longer);
  EXPECT_THAT(lines, ElementsAre("qgen: a\\x0Ab\\x1B[2J \\xFF\n", "qgen: {} {0} %v %n \xe5\x8d\x95\n",
                                 "qgen: \n", "qgen: " + longer + "\n"));
}

TEST_F(LogTest, CopiesWriteToTheSamePlace) {
  const Log first = log(LogLevel::warning);
  const Log second = first;
  first.warning("1");
  second.warning("2");
  EXPECT_THAT(lines, ElementsAre("qgen: 1\n", "qgen: 2\n"));
}

TEST_F(LogTest, WithoutASinkDropsEverything) {
  say_all(Log());
  EXPECT_THAT(lines, IsEmpty());
}

TEST_F(LogTest, WhatTheSinkThrowsGoesThroughEachTimeAndNothingIsPrinted) {
  const Log broken(LogLevel::error, [](std::string_view) { throw std::bad_alloc(); });
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) EXPECT_THROW(broken.error("x"), std::bad_alloc);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace qgen
