// How the prompt is put together.
#include <gmock/gmock.h>
#include <sys/stat.h>

#include <algorithm>
#include <thread>

#include "cli/command.h"

namespace qgen::test {
namespace {

using namespace std::string_literals;
using ::testing::HasSubstr;

class Input : public ::testing::Test {
 protected:
  Input() {
    write_file(folder_.path() / "one", "first\n");
    write_file(folder_.path() / "two", "second");
    write_file(folder_.path() / "empty", "");
  }

  /// The prompt as the program understood it: ids are bytes in this model.
  [[nodiscard]] std::vector<std::string> arguments(std::vector<std::string> more) const {
    std::vector<std::string> all{"-m", model_.path(), "-n", "0", "--echo"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  [[nodiscard]] std::string prompt(std::vector<std::string> more) const {
    const Result result = qgen(arguments(std::move(more)));
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  }
  [[nodiscard]] std::string prompt_with_input(std::vector<std::string> more, std::string input) const {
    const Result result = qgen_with_input(arguments(std::move(more)), std::move(input));
    EXPECT_EQ(result.status, 0) << result.err;
    return result.out;
  }
  [[nodiscard]] std::string path(const std::string& name) const { return (folder_.path() / name).string(); }

  static ScriptedModel large() {
    ScriptedModel model;
    model.context = 100'000;
    return model;
  }
  ModelFolder model_{large()};
  TempFolder folder_;
};

TEST_F(Input, TextByOptionOrByItself) {
  EXPECT_EQ(prompt({"-p", "text"}), "text");
  EXPECT_EQ(prompt({"--prompt=text"}), "text");
  EXPECT_EQ(prompt({"text"}), "text");
  EXPECT_EQ(prompt({"--", "-5 degrees"}), "-5 degrees");
  EXPECT_EQ(prompt({"-p", "-5 degrees"}), "-5 degrees");
  EXPECT_EQ(prompt({"-p", "[a,b]"}), "[a,b]");
  EXPECT_EQ(prompt({"-p", "%%x \"quoted\" 'text'"}), "%%x \"quoted\" 'text'");
}

TEST_F(Input, OrderIsStdinFilesTextJoinedByNewlines) {
  EXPECT_EQ(prompt_with_input({"-p", "end", "-f", path("one"), "--file", path("two")}, "piped"),
            "piped\nfirst\n\nsecond\nend");
}

TEST_F(Input, EmptySourcesLeaveNoTrace) {
  EXPECT_EQ(prompt_with_input({"-p", "text", "-f", path("empty")}, ""), "text");
  EXPECT_EQ(prompt_with_input({"-p", ""}, "piped"), "piped");
}

TEST_F(Input, FinalNewlineOfStdinStays) {
  EXPECT_EQ(prompt_with_input({}, "one\ntwo\nthree\n"), "one\ntwo\nthree\n");
}

TEST_F(Input, DashNamesStdin) {
  EXPECT_EQ(prompt_with_input({"-p", "-"}, "piped"), "piped");
  EXPECT_EQ(prompt_with_input({"-"}, "piped"), "piped");
  EXPECT_EQ(prompt_with_input({"-f", path("two"), "-f", "-", "end"}, "piped"), "second\npiped\nend");
}

TEST_F(Input, BytesAreTakenAsTheyAre) {
  const std::string bytes = "\xff\xfe\x41\0\xc0\x80\xed\xa0\x80\xe6\xad\r\n"s;
  EXPECT_EQ(prompt_with_input({}, bytes), bytes);
  write_file(folder_.path() / "bytes", bytes);
  EXPECT_EQ(prompt({"-f", path("bytes")}), bytes);
}

TEST_F(Input, InvalidBytesHaveTheSameIdsOnEveryRoute) {
  const std::string bytes = "\xff\xfe\x41\xc0\x80\xed\xa0\x80\xe6\xad";
  write_file(folder_.path() / "bytes", bytes);
  const std::vector<std::string> tokenize{"tokenize", "-m", model_.path(), "--ids"};
  const auto ids = [&](std::vector<std::string> more) {
    more.insert(more.begin(), tokenize.begin(), tokenize.end());
    return qgen(more).out;
  };
  const std::string expected = "255 254 65 192 128 237 160 128 230 173\n";
  EXPECT_EQ(ids({"-p", bytes}), expected);
  EXPECT_EQ(ids({"-f", path("bytes")}), expected);
  EXPECT_EQ(qgen_with_input(tokenize, bytes).out, expected);
}

TEST_F(Input, EscapesAreReadOnlyWhereAskedFor) {
  EXPECT_EQ(prompt({"-p", R"(a\nb)"}), R"(a\nb)");
  EXPECT_EQ(prompt({"-p", R"(a\nb\q)", "--escape"}), "a\nb\\q");
  EXPECT_EQ(prompt({"-p", R"(C:\new)"}), R"(C:\new)");
}

TEST_F(Input, LargeInputsArriveWhole) {
  const std::string large(5'000'000, 'x');
  EXPECT_EQ(qgen_with_input({"tokenize", "-m", model_.path(), "--count"}, large).out, "5000000\n");
}

TEST_F(Input, FilesMayBeFifosAndDevices) {
  const std::string fifo = path("fifo");
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  std::thread writer([&] { write_file(fifo, "through a fifo"); });
  EXPECT_EQ(prompt({"-f", fifo}), "through a fifo");
  writer.join();
  EXPECT_EQ(prompt({"-f", "/dev/null", "x"}), "x");
}

TEST_F(Input, NoPromptIsAUsageError) {
  for (const Stream in : {Stream::path, Stream::closed, Stream::pipe, Stream::terminal}) {
    Launch launch = test::launch(arguments({}));
    launch.in = in;
    const Result result = run(kQgen, launch);
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(result.out, "");
    EXPECT_THAT(result.err, HasSubstr("usage: qgen"));
    EXPECT_FALSE(result.timed_out);
  }
  EXPECT_EQ(qgen({}).status, 2);
}

TEST_F(Input, EmptyPromptWithoutAStartTokenIsAUsageError) {
  EXPECT_EQ(qgen({"-p", ""}).status, 2);
  EXPECT_EQ(qgen({"-f", path("empty")}).status, 2);
  EXPECT_THAT(qgen(arguments({"-p", ""})).err, HasSubstr("start token"));
}

TEST_F(Input, EmptyPromptWithAStartTokenRuns) {
  ScriptedModel model;
  model.adds_start = true;
  model.next[ScriptedModel::kStart] = 'h';
  model.chain("hi").next['i'] = ScriptedModel::kEnd;
  const ModelFolder folder(model);
  EXPECT_EQ(qgen({"-m", folder.path(), "-p", ""}).out, "hi");
  EXPECT_EQ(qgen({"-m", folder.path()}).status, 2);
}

TEST_F(Input, StartTokenIsNeverDoubled) {
  ScriptedModel model;
  model.adds_start = true;
  const ModelFolder folder(model);
  const auto count = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {"-m", folder.path(), "-n", "1", "--json"});
    return json_of(qgen(more))["usage"]["prompt_tokens"].get<int>();
  };
  EXPECT_EQ(count({"-p", "ab"}), 3);
  EXPECT_EQ(count({"-p", "<|start|>ab", "--parse-special"}), 3);
}

TEST_F(Input, ControlTokensInTheTextAreTextUnlessAskedFor) {
  const std::vector<std::string> tokenize{"tokenize", "-m", model_.path(), "--ids", "-p", "<|end|>"};
  EXPECT_EQ(qgen(tokenize).out, "60 124 101 110 100 124 62\n");
  std::vector<std::string> special = tokenize;
  special.emplace_back("--parse-special");
  EXPECT_EQ(qgen(special).out, "256\n");
}

TEST_F(Input, WhatCannotBeReadIsAnErrorOfItsOwn) {
  const Result missing = qgen({"-f", path("missing")});
  EXPECT_EQ(missing.status, 5);
  EXPECT_THAT(missing.err, HasSubstr("No such file"));
  EXPECT_EQ(qgen({"-f", folder_.path().string()}).status, 5);
  Launch launch = test::launch({"-p", "x"});
  launch.in_path = folder_.path().string();
  const Result directory = run(kQgen, launch);
  EXPECT_EQ(directory.status, 5);
  EXPECT_THAT(directory.err, HasSubstr("stdin"));
}

TEST_F(Input, TerminalIsReadWhereAskedForAndSaysSo) {
  Launch launch = test::launch(arguments({"-p", "-"}));
  launch.in = Stream::terminal;
  launch.keep_input_open = true;
  Process process(kQgen, launch);
  EXPECT_TRUE(process.wait_for_errors("reading the prompt from the terminal"));
}

TEST_F(Input, TerminalIsNotReadWhereATextIsGiven) {
  Launch launch = test::launch(arguments({"-p", "text"}));
  launch.in = Stream::terminal;
  launch.keep_input_open = true;
  EXPECT_EQ(run(kQgen, launch).out, "text");
}

}  // namespace
}  // namespace qgen::test
