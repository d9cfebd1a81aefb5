// Models that cannot be used: one line, the right status, nothing on stdout.
#include <gmock/gmock.h>

#include <algorithm>

#include "cli/command.h"

namespace qgen::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class Errors : public ::testing::Test {
 protected:
  [[nodiscard]] Result run_model() const { return qgen({"-m", model_.path(), "-p", "a"}); }
  void damage(const std::string& name, const std::function<void(std::string&)>& change) const {
    std::string bytes = read_file(model_.file(name));
    change(bytes);
    write_file(model_.file(name), bytes);
  }

  ModelFolder model_{short_story()};
  TempFolder folder_;
};

TEST_F(Errors, MissingModelNamesPathAndReason) {
  const Result result = qgen({"-m", "/nowhere/model", "-p", "a"});
  expect_error(result, 5);
  EXPECT_THAT(result.err, AllOf(HasSubstr("/nowhere/model"), HasSubstr("No such file")));
}

TEST_F(Errors, FilesInsteadOfFoldersGetHelp) {
  for (const auto& [name, says] :
       std::vector<std::pair<std::string, std::string>>{{"model.gguf", "gguf"},
                                                        {"ckpt.pt", "pt"},
                                                        {"model.safetensors", "folder that holds"},
                                                        {"x", "folder"}}) {
    const std::string path = (folder_.path() / name).string();
    write_file(path, "x");
    const Result result = qgen({"-m", path, "-p", "a"});
    expect_error(result, 5);
    EXPECT_THAT(result.err, HasSubstr(says));
  }
}

TEST_F(Errors, EmptyFolder) {
  expect_error(qgen({"-m", folder_.path().string(), "-p", "a"}), 5);
}

TEST_F(Errors, MissingFilesAreNamed) {
  for (const std::string name : {"config.json", "tokenizer.json", "model.safetensors"}) {
    const ModelFolder model{short_story()};
    std::filesystem::remove(model.file(name));
    const Result result = qgen({"-m", model.path(), "-p", "a"});
    expect_error(result, 5);
    EXPECT_THAT(result.err, HasSubstr(name));
  }
}

TEST_F(Errors, TruncatedWeights) {
  damage("model.safetensors", [](std::string& bytes) { bytes.resize(bytes.size() - 2); });
  const Result result = run_model();
  expect_error(result, 5);
  EXPECT_THAT(result.err, HasSubstr("model.safetensors"));
}

TEST_F(Errors, UnknownArchitectureIsNamed) {
  damage("config.json", [](std::string& text) { text.replace(text.find("\"qwen3\""), 7, "\"mamba\""); });
  const Result result = run_model();
  expect_error(result, 5);
  EXPECT_THAT(result.err, AllOf(HasSubstr("mamba"), HasSubstr("qwen3")));
}

TEST_F(Errors, AbsurdConfigValue) {
  damage("config.json", [](std::string& text) {
    text.replace(text.find("\"num_hidden_layers\":1"), 21, "\"num_hidden_layers\":0");
  });
  expect_error(run_model(), 5);
}

TEST_F(Errors, SamplingValuesOfTheModelAreChecked) {
  write_file(model_.file("generation_config.json"), R"({"top_p": 7})");
  const Result result = run_model();
  expect_error(result, 5);
  EXPECT_THAT(result.err, HasSubstr("top_p"));
}

TEST_F(Errors, ControlCharactersOfFilesNeverReachTheTerminal) {
  damage("model.safetensors", [](std::string& bytes) {
    const std::string name = "model.norm.weight";
    bytes.replace(bytes.find(name), name.size(), "\\u001b]8;;x\\u0007");
  });
  const Result result = run_model();
  expect_error(result, 5);
  EXPECT_THAT(result.err, AllOf(Not(HasSubstr("\x1b")), Not(HasSubstr("\x07"))));

  damage("config.json", [](std::string& text) { text.replace(text.find("\"qwen3\""), 7, "\"\\u001b[2J\""); });
  const Result config = run_model();
  expect_error(config, 5);
  EXPECT_THAT(config.err, AllOf(Not(HasSubstr("\x1b")), HasSubstr("[2J")));

  const Result path = qgen({"-m", "/nowhere/\x1b[2J\n", "-p", "a"});
  expect_error(path, 5);
  EXPECT_THAT(path.err, Not(HasSubstr("\x1b")));
}

TEST_F(Errors, NonFiniteLogitsStopTheText) {
  ScriptedModel model;
  model.chain("abN");
  model.not_finite = true;
  const ModelFolder folder(model);
  for (const std::string temperature : {"0", "0.7"}) {
    const Result result = qgen({"-m", folder.path(), "-p", "a", "--temp", temperature});
    EXPECT_EQ(result.status, 5);
    EXPECT_EQ(result.out, "bN");
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1);
    EXPECT_THAT(result.err, AllOf(HasSubstr("logit"), HasSubstr("position")));
    expect_error(qgen({"-m", folder.path(), "-p", "N", "--temp", temperature}), 5);
  }
}

TEST_F(Errors, NonFiniteLogitsAreAnErrorInJson) {
  ScriptedModel model;
  model.chain("abN");
  model.not_finite = true;
  const ModelFolder folder(model);
  const Result result = qgen({"-m", folder.path(), "-p", "a", "--json"});
  EXPECT_EQ(result.status, 5);
  EXPECT_EQ(json_of(result)["stop"], "error");
  EXPECT_EQ(json_of(result)["text"], "bN");
}

TEST_F(Errors, DevicesThatAreNotBuilt) {
  expect_error(qgen({"x", "--device", "cuda"}), 7);
}

TEST_F(Errors, FileLargerThanMemory) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need an address space without limits";
  const std::filesystem::path huge = folder_.path() / "huge";
  write_file(huge, "");
  std::filesystem::resize_file(huge, std::uintmax_t{1} << 31);
  Launch launch = test::launch({"-f", huge.string()});
  launch.address_space = std::size_t{400} << 20;
  expect_error(run(kQgen, launch), 6);
}

/// Wherever memory ends, that is what is said; the program itself takes some 20 MiB of addresses.
TEST_F(Errors, NotEnoughMemoryAtAnyPoint) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need an address space without limits";
  int failed = 0, finished = 0;
  for (std::size_t megabytes = 30; megabytes <= 210; megabytes += 10) {
    Launch launch = test::launch({"-p", "Once upon a time", "-n", "4", "--seed", "1"});
    launch.address_space = megabytes << 20;
    const Result result = run(kQgen, launch);
    SCOPED_TRACE(std::to_string(megabytes) + " MiB");
    EXPECT_FALSE(result.timed_out);
    if (result.status == 0) {
      ++finished;
      EXPECT_EQ(result.err, "");
    } else {
      ++failed;
      expect_error(result, 6);
    }
  }
  EXPECT_GT(failed, 0);
  EXPECT_GT(finished, 0);
}

/// The least memory, in KiB, in which one token can be generated.
std::size_t memory_of_one_token() {
  for (std::size_t kilobytes = 10'000; kilobytes < 400'000; kilobytes += 500) {
    Launch launch = test::launch({"-p", "Once", "-n", "1", "-t", "1"});
    launch.address_space = kilobytes << 10;
    if (run(kQgen, launch).status == 0) return kilobytes;
  }
  return 0;
}

/// The cache grows with the text, so that with little more memory than one token needs it ends on the way.
TEST_F(Errors, MemoryThatEndsWithinTheReplyKeepsTheText) {
  if (kSanitized) GTEST_SKIP() << "sanitizers need an address space without limits";
  const std::vector<std::string> command{"-p", "Once", "-n",     "1000", "--ignore-eos",
                                         "-t", "1",    "--seed", "1"};
  const std::string whole = qgen(command).out;
  const std::size_t least = memory_of_one_token();
  ASSERT_GT(least, 0U);
  int cut = 0;
  for (std::size_t kilobytes = least; kilobytes < least + 4000; kilobytes += 400) {
    SCOPED_TRACE(std::to_string(kilobytes) + " KiB");
    const auto limited = [&](const std::string& format) {
      Launch launch = test::launch(command);
      launch.arguments.push_back(format);
      launch.address_space = kilobytes << 10;
      return run(kQgen, launch);
    };
    const Result text = limited("--raw");
    if (text.status == 0) break;
    EXPECT_EQ(text.status, 6);
    EXPECT_EQ(std::ranges::count(text.err, '\n'), 1) << text.err;
    EXPECT_THAT(text.err, HasSubstr("not enough memory"));
    EXPECT_TRUE(whole.starts_with(text.out));
    cut += text.out.empty() ? 0 : 1;
    const Result object = limited("--json");
    EXPECT_EQ(object.status, 6);
    EXPECT_EQ(json_of(object)["stop"], "error");
    EXPECT_THAT(json_of(object)["error"], HasSubstr("not enough memory"));
    const Result stream = limited("--json-stream");
    EXPECT_EQ(stream.status, 6);
    const auto last = json::parse(stream.out.substr(stream.out.rfind('\n', stream.out.size() - 2) + 1));
    EXPECT_EQ(last["event"], "end");
    EXPECT_EQ(last["stop"], "error");
  }
  EXPECT_GT(cut, 0);
}

}  // namespace
}  // namespace qgen::test
