// Interrupts, closed pipes and how soon text arrives.
#include <gmock/gmock.h>
#include <unistd.h>

#include <csignal>

#include "cli/command.h"

namespace qgen::test {
namespace {

using ::testing::HasSubstr;

/// Repeats the last character of the prompt until the context is full, which takes long.
ScriptedModel endless() {
  ScriptedModel model;
  model.context = 1 << 20;
  return model;
}

class Signals : public ::testing::Test {
 protected:
  ModelFolder model_{endless()};
  Launch endless_ = launch({"-m", model_.path(), "-p", "z"});
};

TEST_F(Signals, InterruptKeepsTheTextShowsStatsAndExits130) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Process process(kQgen, endless_);
    ASSERT_TRUE(process.wait_for_output(5));
    process.send(signal);
    const Result result = process.finish();
    EXPECT_EQ(result.status, 130);
    EXPECT_EQ(result.out, std::string(result.out.size(), 'z'));
    EXPECT_THAT(result.err, HasSubstr("stop interrupted"));
    EXPECT_THAT(result.err, HasSubstr("reply " + std::to_string(result.out.size()) + " tokens"));
  }
}

TEST_F(Signals, InterruptOnATerminalEndsTheLine) {
  endless_.out = Stream::terminal;
  Process process(kQgen, endless_);
  ASSERT_TRUE(process.wait_for_output(5));
  process.send(SIGINT);
  const Result result = process.finish();
  EXPECT_EQ(result.status, 130);
  EXPECT_EQ(result.out, std::string(result.out.size() - 1, 'z') + "\n");
}

TEST_F(Signals, QuietInterruptSaysNothing) {
  endless_.arguments.push_back("-q");
  Process process(kQgen, endless_);
  ASSERT_TRUE(process.wait_for_output(5));
  process.send(SIGINT);
  EXPECT_EQ(process.finish().err, "");
}

TEST_F(Signals, InterruptedJsonIsWhole) {
  endless_.arguments.push_back("--json");
  Process process(kQgen, endless_);
  ::usleep(300'000);
  process.send(SIGINT);
  const Result result = process.finish();
  EXPECT_EQ(result.status, 130);
  // Where the signal came before the first token there is no reply at all.
  if (!result.out.empty()) {
    EXPECT_EQ(json_of(result)["stop"], "interrupted");
  }
}

TEST_F(Signals, SecondInterruptEndsAtOnceEvenWhereOutputIsStuck) {
  Process process(kQgen, endless_);
  ASSERT_TRUE(process.wait_for_output(1));
  // Nobody reads on, so that the pipe fills and the program waits in write().
  ::usleep(1'500'000);
  process.send(SIGINT);
  ::usleep(200'000);
  process.send(SIGINT);
  ::usleep(200'000);
  EXPECT_FALSE(process.is_running());
  EXPECT_EQ(process.finish().status, 130);
}

TEST_F(Signals, InterruptWhileWaitingForInput) {
  Launch waiting = launch_with_input({"-m", model_.path()}, "some");
  waiting.keep_input_open = true;
  Process process(kQgen, waiting);
  ::usleep(300'000);
  process.send(SIGINT);
  const Result result = process.finish();
  EXPECT_EQ(result.status, 130);
  EXPECT_EQ(result.out, "");
}

TEST_F(Signals, CommandsWithoutAReplyEndAtOnce) {
  Launch waiting = launch_with_input({"tokenize"}, "some");
  waiting.keep_input_open = true;
  Process process(kQgen, waiting);
  ::usleep(200'000);
  process.send(SIGINT);
  EXPECT_EQ(process.finish().status, 130);
}

TEST_F(Signals, ReaderThatGoesAwayEndsTheRunSilently) {
  for (const std::string format : {"--raw", "--json-stream", "--verbose"}) {
    Launch launch = endless_;
    launch.arguments.push_back(format);
    Process process(kQgen, launch);
    ASSERT_TRUE(process.wait_for_output(5));
    process.close_output();
    const Result result = process.finish();
    EXPECT_EQ(result.status, 141);
    EXPECT_EQ(result.signal, 0);
    if (format != "--verbose") {
      EXPECT_EQ(result.err, "");
    }
  }
}

TEST_F(Signals, ReaderThatGoesAwayEndsReports) {
  Launch launch = launch_with_input({"tokenize"}, std::string(1'000'000, 'a'));
  Process process(kQgen, launch);
  process.close_output();
  const Result result = process.finish();
  EXPECT_EQ(result.status, 141);
  EXPECT_EQ(result.err, "");
}

TEST_F(Signals, TextArrivesTokenByTokenThroughAPipe) {
  Process process(kQgen, launch({"-p", "Once upon a time", "-n", "300", "--ignore-eos", "--seed", "1"}));
  ASSERT_TRUE(process.wait_for_output(1));
  // A buffer of stdio's size would hold back the first 4096 bytes.
  EXPECT_LT(process.output().size(), 1000U);
  EXPECT_TRUE(process.is_running());
  EXPECT_GT(process.finish().out.size(), 500U);
}

TEST_F(Signals, WaitingForAnIdlePipeIsSaid) {
  Launch waiting = launch_with_input({"-m", model_.path(), "-p", "z", "-n", "2"}, "");
  waiting.keep_input_open = true;
  Process process(kQgen, waiting);
  EXPECT_TRUE(process.wait_for_errors("waiting for the end of stdin"));
}

}  // namespace
}  // namespace qgen::test
