// What stdout carries, byte for byte, for every kind of stream.
#include <gmock/gmock.h>

#include <algorithm>

#include "cli/command.h"

namespace qgen::test {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

class Streams : public ::testing::Test {
 protected:
  [[nodiscard]] Launch story(std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"-m", model_.path(), "-p", "a"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return launch(arguments);
  }

  ModelFolder model_{short_story()};
  TempFolder folder_;
};

/// What a person sees of a terminal's last line after everything was written to it.
std::string last_line_on_screen(const std::string& written) {
  std::string line;
  std::size_t column = 0;
  for (const char c : written) {
    if (c == '\n') {
      line.clear();
      column = 0;
    } else if (c == '\r') {
      column = 0;
    } else {
      if (line.size() <= column) line.resize(column + 1, ' ');
      line[column++] = c;
    }
  }
  line.erase(line.find_last_not_of(' ') + 1);
  return line;
}

TEST_F(Streams, PipeGetsTheTextAndNothingElseWhateverIsSaidOnStderr) {
  for (const std::string option : {"--temp=0", "--quiet", "--verbose", "--stats"}) {
    for (const Stream err : {Stream::pipe, Stream::terminal, Stream::closed}) {
      Launch launch = story({option});
      launch.err = err;
      const Result result = run(kQgen, launch);
      EXPECT_EQ(result.out, "bcdef") << option;
      EXPECT_EQ(result.status, 0) << option;
    }
  }
}

TEST_F(Streams, FileGetsTheSameBytes) {
  Launch launch = story();
  launch.out = Stream::path;
  launch.out_path = (folder_.path() / "out").string();
  EXPECT_EQ(run(kQgen, launch).status, 0);
  EXPECT_EQ(read_file(launch.out_path), "bcdef");
}

TEST_F(Streams, TerminalGetsAFinalNewlineWhereTheTextHasNone) {
  Launch launch = story();
  launch.out = Stream::terminal;
  EXPECT_EQ(run(kQgen, launch).out, "bcdef\n");

  ScriptedModel with_newline;
  with_newline.chain("ab\n").next['\n'] = ScriptedModel::kEnd;
  const ModelFolder folder(with_newline);
  launch.arguments = {"-m", folder.path(), "-p", "a"};
  EXPECT_EQ(run(kQgen, launch).out, "b\n");
}

TEST_F(Streams, NothingGeneratedIsNothingPrintedOnATerminalToo) {
  Launch launch = story({"-n", "0"});
  launch.out = Stream::terminal;
  const Result result = run(kQgen, launch);
  EXPECT_EQ(result.out, "");
  EXPECT_EQ(result.status, 0);
}

TEST_F(Streams, StderrIsSilentInAScript) {
  EXPECT_EQ(run(kQgen, story()).err, "");
  EXPECT_EQ(qgen({"-p", "Once", "-n", "3"}).err, "");
}

TEST_F(Streams, ProgressOnATerminalIsErased) {
  Launch launch = story();
  launch.err = Stream::terminal;
  const std::string err = run(kQgen, launch).err;
  EXPECT_THAT(err, HasSubstr("loading model"));
  EXPECT_EQ(last_line_on_screen(err), "");
  EXPECT_THAT(err, Not(HasSubstr("\n")));
}

TEST_F(Streams, QuietIsSilentOnATerminalToo) {
  Launch launch = story({"--quiet"});
  launch.err = Stream::terminal;
  EXPECT_EQ(run(kQgen, launch).err, "");
}

TEST_F(Streams, StatsAreOneLine) {
  const std::string err = run(kQgen, story({"--stats", "--seed", "7"})).err;
  EXPECT_EQ(std::ranges::count(err, '\n'), 1);
  EXPECT_THAT(err, HasSubstr("prompt 1 tokens"));
  EXPECT_THAT(err, HasSubstr("reply 5 tokens"));
  EXPECT_THAT(err, HasSubstr("seed 7"));
  EXPECT_THAT(err, HasSubstr("stop end"));
  EXPECT_THAT(err, HasSubstr("tok/s"));
}

TEST_F(Streams, DemonstrationModelIsNamedOnATerminalOnly) {
  Launch launch = test::launch({"-p", "Once", "-n", "1"});
  EXPECT_EQ(run(kQgen, launch).err, "");
  launch.err = Stream::terminal;
  EXPECT_THAT(run(kQgen, launch).err, HasSubstr("demonstration model"));
  EXPECT_THAT(run(kQgen, story()).err, Not(HasSubstr("demonstration model")));
}

TEST_F(Streams, VerboseTellsModelDeviceThreadsAndMemory) {
  const std::string err = run(kQgen, story({"--verbose", "-t", "1"})).err;
  for (const std::string word : {"qwen3", "parameters", "cpu", "1 thread", "cache", "memory"}) {
    EXPECT_THAT(err, HasSubstr(word));
  }
  EXPECT_THAT(err, Not(HasSubstr("\x1b")));
}

TEST_F(Streams, EchoPrintsThePromptFirst) {
  EXPECT_EQ(run(kQgen, story({"--echo"})).out, "abcdef");
  Launch launch = story({"--echo"});
  launch.out = Stream::terminal;
  EXPECT_EQ(run(kQgen, launch).out, "abcdef\n");
}

TEST_F(Streams, ErrorsLeaveStdoutEmpty) {
  for (const Stream out : {Stream::pipe, Stream::terminal}) {
    Launch launch = story({"-c", "1000000"});
    launch.out = out;
    const Result result = run(kQgen, launch);
    EXPECT_EQ(result.out, "");
    EXPECT_EQ(result.status, 2);
    EXPECT_EQ(std::ranges::count(result.err, '\n'), 1);
  }
}

TEST_F(Streams, FullDiskIsAnError) {
  Launch launch = story();
  launch.out = Stream::path;
  launch.out_path = "/dev/full";
  const Result result = run(kQgen, launch);
  EXPECT_EQ(result.status, 8);
  EXPECT_THAT(result.err, HasSubstr("No space left"));
  EXPECT_EQ(std::ranges::count(result.err, '\n'), 1);
}

TEST_F(Streams, FileSizeLimitIsAnErrorAndNoSignal) {
  Launch launch = test::launch({"tokenize", "--help"});
  launch.out = Stream::path;
  launch.out_path = (folder_.path() / "limited").string();
  launch.file_size = 10;
  const Result result = run(kQgen, launch);
  EXPECT_EQ(result.status, 8);
  EXPECT_EQ(read_file(launch.out_path).size(), 10U);
}

TEST_F(Streams, ClosedStdoutIsAnError) {
  for (const auto& arguments :
       {story().arguments, {"--help"}, {"--version"}, {"doctor", "--help"}, {"tokenize", "x"}}) {
    Launch launch = test::launch(arguments);
    launch.out = Stream::closed;
    const Result result = run(kQgen, launch);
    EXPECT_EQ(result.status, 8) << arguments[0];
    EXPECT_THAT(result.err, HasSubstr("stdout is closed"));
  }
}

TEST_F(Streams, AllStreamsClosedStillGivesAStatus) {
  Launch launch = story();
  launch.in = launch.out = launch.err = Stream::closed;
  EXPECT_EQ(run(kQgen, launch).status, 8);
}

TEST_F(Streams, ClosedStderrDoesNotMixIntoTheText) {
  Launch launch = story({"--verbose", "--stats"});
  launch.err = Stream::closed;
  launch.out = Stream::path;
  launch.out_path = (folder_.path() / "text").string();
  EXPECT_EQ(run(kQgen, launch).status, 0);
  EXPECT_EQ(read_file(launch.out_path), "bcdef");
}

TEST_F(Streams, TextIsTheSameOnAPipeAndATerminal) {
  Launch launch = test::launch({"-p", "Once upon a time", "-n", "40", "--seed", "3"});
  const std::string piped = run(kQgen, launch).out;
  launch.out = Stream::terminal;
  EXPECT_EQ(run(kQgen, launch).out, piped + (piped.ends_with('\n') ? "" : "\n"));
}

TEST_F(Streams, ChatTemplateIsMentionedWithVerboseOnly) {
  ScriptedModel model = short_story();
  model.chat_template = "{{ messages }}";
  const ModelFolder folder(model);
  EXPECT_EQ(qgen({"-m", folder.path(), "-p", "a"}).err, "");
  EXPECT_EQ(qgen({"-m", folder.path(), "-p", "a"}).out, "bcdef");
  EXPECT_THAT(qgen({"-m", folder.path(), "-p", "a", "-v"}).err, HasSubstr("chat template"));
  EXPECT_THAT(qgen({"-m", folder.path(), "-p", "a", "-v", "--raw"}).err, Not(HasSubstr("chat template")));
}

}  // namespace
}  // namespace qgen::test
