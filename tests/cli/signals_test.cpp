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
  Launch launch = launch_with_input({"-m", model_.path(), "--json"}, std::string(100'000, 'z'));
  launch.err = Stream::terminal;
  Process process(kQgen, launch);
  ASSERT_TRUE(process.wait_for_errors(" of 100000 tokens"));
  process.send(SIGINT);
  const Result result = process.finish();
  EXPECT_EQ(result.status, 130);
  EXPECT_EQ(json_of(result)["stop"], "interrupted");
}

TEST_F(Signals, InterruptedJsonStreamHasItsEnd) {
  endless_.arguments.push_back("--json-stream");
  Process process(kQgen, endless_);
  ASSERT_TRUE(process.wait_for_output(200));
  process.send(SIGINT);
  const Result result = process.finish();
  EXPECT_EQ(result.status, 130);
  const std::size_t last = result.out.rfind('\n', result.out.size() - 2) + 1;
  const auto end = nlohmann::json::parse(result.out.substr(last));
  EXPECT_EQ(end["event"], "end");
  EXPECT_EQ(end["stop"], "interrupted");
}

TEST_F(Signals, SecondInterruptEndsAtOnceEvenWhereOutputIsStuck) {
  endless_.arguments.push_back("--json-stream");  // fills a pipe sooner
  Process process(kQgen, endless_);
  ASSERT_TRUE(process.wait_for_output(1));
  // Nobody reads on, so that the pipe fills and the program waits in write().
  ASSERT_TRUE(process.wait_for_stuck_output());
  for (int i = 0; i < 500 && process.is_running(); ++i) {
    process.send(SIGINT);
    ::usleep(20'000);
  }
  EXPECT_FALSE(process.is_running());
  EXPECT_EQ(process.finish().status, 130);
}

TEST_F(Signals, InterruptWhileWaitingForInput) {
  for (const std::vector<std::string>& command :
       {std::vector<std::string>{"-m", model_.path(), "-p", "-"}, {"tokenize", "-p", "-"}}) {
    Launch waiting = launch(command);
    waiting.in = Stream::terminal;
    waiting.keep_input_open = true;
    Process process(kQgen, waiting);
    ASSERT_TRUE(process.wait_for_errors("reading the prompt from the terminal"));
    process.send(SIGINT);
    const Result result = process.finish();
    EXPECT_EQ(result.status, 130);
    EXPECT_EQ(result.out, "");
  }
}

TEST_F(Signals, InterruptsThatTheCallerIgnoresStayIgnored) {
  Launch background = launch({"-c", R"(trap "" INT TERM; exec "$0" "$@")", kQgen});
  background.arguments.insert(background.arguments.end(), endless_.arguments.begin(),
                              endless_.arguments.end());
  background.arguments.insert(background.arguments.end(), {"-n", "3000"});
  Process process("/bin/sh", background);
  ASSERT_TRUE(process.wait_for_output(5));
  process.send(SIGINT);
  process.send(SIGTERM);
  const Result result = process.finish();
  EXPECT_EQ(result.status, 0);
  EXPECT_EQ(result.out.size(), 3000U);
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
  process.send(SIGINT);
  EXPECT_EQ(process.finish().status, 130);
}

}  // namespace
}  // namespace qgen::test
