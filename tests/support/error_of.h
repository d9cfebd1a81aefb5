#pragma once

#include <gtest/gtest.h>

#include <string>

#include "qgen/base/error.h"

namespace qgen::test {

/// The message of the Error of this kind that `action` throws; a failure and "" where it throws none.
template <typename Action>
std::string error_of(Action&& action, ErrorKind kind = ErrorKind::file) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(static_cast<int>(error.kind()), static_cast<int>(kind)) << error.what();
    return error.what();
  }
  ADD_FAILURE() << "no error";
  return {};
}

}  // namespace qgen::test
