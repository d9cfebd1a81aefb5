#include "qgen/base/log.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace qgen {
namespace {

TEST(Log, PassesLevelAndMessageToItsSink) {
  std::vector<std::string> seen;
  const Log log([&seen](LogLevel level, const std::string& message) {
    seen.push_back((level == LogLevel::warning ? "warning " : "verbose ") + message);
  });
  log.verbose("a");
  log.warning("b");
  EXPECT_EQ(seen, (std::vector<std::string>{"verbose a", "warning b"}));
}

TEST(Log, WithoutASinkDropsEverything) {
  EXPECT_NO_THROW(Log().warning("nobody listens"));
}

}  // namespace
}  // namespace qgen
