#include <gmock/gmock.h>

#include <new>
#include <stdexcept>

#include "cli/program.h"
#include "qgen/base/error.h"

namespace qgen::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

/// What is said on stderr, after checking the code.
std::string report(const std::exception& problem, ExitCode expected) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(report_failure(problem), expected);
  return ::testing::internal::GetCapturedStderr();
}

TEST(ReportFailure, OwnErrorsAreSaidAsTheyAre) {
  EXPECT_EQ(report(Error(ErrorKind::device, "no device"), ExitCode::device), "qgen: no device\n");
}

TEST(ReportFailure, ContainersThatCannotGrowAreOutOfMemory) {
  EXPECT_THAT(report(std::bad_alloc(), ExitCode::memory), StartsWith("qgen: not enough memory"));
  EXPECT_THAT(report(std::length_error("vector"), ExitCode::memory), StartsWith("qgen: not enough memory"));
}

TEST(ReportFailure, OthersAreCalledUnexpected) {
  const std::string said = report(std::out_of_range("map::at"), ExitCode::input);
  EXPECT_THAT(said, StartsWith("qgen: unexpected failure"));
  EXPECT_THAT(said, HasSubstr("map::at"));
}

}  // namespace
}  // namespace qgen::cli
