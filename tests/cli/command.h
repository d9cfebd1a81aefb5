#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "support/files.h"
#include "support/process.h"
#include "support/sanitized.h"
#include "support/scripted_model.h"

// Black-box tests run the program that was just built.
namespace qgen::test {

inline const std::string kQgen = QGEN_BINARY;

/// Streams as a script has them: no input, pipes for the outputs.
inline Launch launch(std::vector<std::string> arguments) {
  Launch result;
  result.arguments = std::move(arguments);
  return result;
}

inline Launch launch_with_input(std::vector<std::string> arguments, std::string input) {
  Launch result = launch(std::move(arguments));
  result.in = Stream::pipe;
  result.input = std::move(input);
  return result;
}

inline Result qgen(std::vector<std::string> arguments) {
  return run(kQgen, launch(std::move(arguments)));
}

inline Result qgen_with_input(std::vector<std::string> arguments, std::string input) {
  return run(kQgen, launch_with_input(std::move(arguments), std::move(input)));
}

inline nlohmann::json json_of(const Result& result) {
  return nlohmann::json::parse(result.out);
}

/// One line on stderr, nothing on stdout, no signal.
inline void expect_error(const Result& result, int status) {
  EXPECT_EQ(result.status, status) << result.err;
  EXPECT_EQ(result.signal, 0);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1) << result.err;
  EXPECT_TRUE(result.err.starts_with("qgen: ")) << result.err;
}

/// A scripted model in a folder of its own.
class ModelFolder {
 public:
  explicit ModelFolder(const ScriptedModel& model) { model.write(folder_.path() / "model"); }
  [[nodiscard]] std::string path() const { return (folder_.path() / "model").string(); }
  [[nodiscard]] std::filesystem::path file(const std::string& name) const {
    return folder_.path() / "model" / name;
  }

 private:
  TempFolder folder_;
};

/// Says "bcdef" after "a" and ends.
inline ScriptedModel short_story() {
  ScriptedModel model;
  model.chain("abcdef").next['f'] = ScriptedModel::kEnd;
  return model;
}

}  // namespace qgen::test
