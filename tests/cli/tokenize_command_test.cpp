#include <gmock/gmock.h>

#include <algorithm>

#include "cli/command.h"

namespace qgen::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TokenizeCommand : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> with_model(std::vector<std::string> more) const {
    more.insert(more.begin(), {"tokenize", "-m", model_.path()});
    return more;
  }
  static ScriptedModel with_start() {
    ScriptedModel model;
    model.adds_start = true;
    return model;
  }
  ModelFolder model_{ScriptedModel{}};
  ModelFolder start_{with_start()};
  TempFolder folder_;
};

TEST_F(TokenizeCommand, PrintsIdsAndPieces) {
  EXPECT_EQ(qgen(with_model({"a\"\n"})).out, "97\t\"a\"\n34\t\"\\\"\"\n10\t\"\\n\"\n");
  EXPECT_EQ(qgen_with_input(with_model({}), "\xff").out, "255\t\"\xef\xbf\xbd\"\n");
}

TEST_F(TokenizeCommand, PrintsIdsOnALineOrTheirNumber) {
  EXPECT_EQ(qgen(with_model({"--ids", "abc"})).out, "97 98 99\n");
  EXPECT_EQ(qgen(with_model({"--count", "abc"})).out, "3\n");
  EXPECT_EQ(qgen_with_input(with_model({"--count"}), "").out, "0\n");
  EXPECT_EQ(qgen_with_input(with_model({"--ids"}), "").out, "\n");
  EXPECT_EQ(qgen_with_input(with_model({}), "").out, "");
}

TEST_F(TokenizeCommand, WorksOnTheBuiltInModel) {
  const Result result = qgen({"tokenize", "Once upon a time"});
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.out, HasSubstr("\"Once\""));
}

TEST_F(TokenizeCommand, NeedsNothingButTheTokenizer) {
  std::filesystem::remove(model_.file("model.safetensors"));
  std::filesystem::remove(model_.file("config.json"));
  EXPECT_EQ(qgen(with_model({"--ids", "ab"})).out, "97 98\n");
}

TEST_F(TokenizeCommand, StartTokenIsAddedWhereTheTokenizerAddsOne) {
  EXPECT_EQ(qgen({"tokenize", "-m", start_.path(), "--ids", "a"}).out, "258 97\n");
  EXPECT_EQ(qgen({"tokenize", "-m", start_.path(), "--ids", "--no-bos", "a"}).out, "97\n");
}

TEST_F(TokenizeCommand, DecodeGivesTheBytesBack) {
  const std::string bytes = "a \xff\xe6\xad\n";
  const std::string ids = qgen_with_input({"tokenize", "--ids"}, bytes).out;
  EXPECT_EQ(qgen_with_input({"tokenize", "--decode"}, ids).out, bytes);
  EXPECT_EQ(qgen(with_model({"--decode", "97, 98\n99,"})).out, "abc");
  EXPECT_EQ(qgen_with_input(with_model({"--decode"}), "").out, "");
}

TEST_F(TokenizeCommand, BadIdsAreNamed) {
  for (const std::string id : {"x", "-1", "1.5", "259", "263", "99999999999999999999", "97x"}) {
    const Result result = qgen(with_model({"--decode", "97 " + id}));
    EXPECT_EQ(result.status, 2) << id;
    EXPECT_THAT(result.err, HasSubstr(id));
  }
}

TEST_F(TokenizeCommand, JsonLinesAnswerInOrder) {
  const std::string lines = "\"ab\"\n{\"text\": \"c\", \"id\": 7}\n\"\"\n\"\\u0041\\n\"";
  EXPECT_EQ(qgen_with_input(with_model({"--jsonl", "-"}), lines).out, "[97,98]\n[99]\n[]\n[65,10]\n");
  EXPECT_EQ(qgen_with_input(with_model({"--jsonl", "-", "--count"}), lines).out, "2\n1\n0\n2\n");
  write_file(folder_.path() / "lines", lines);
  EXPECT_EQ(qgen(with_model({"--jsonl", (folder_.path() / "lines").string(), "--count"})).out,
            "2\n1\n0\n2\n");
}

TEST_F(TokenizeCommand, BadLinesGetAnErrorAndTheOthersAnAnswer) {
  const Result result =
      qgen_with_input(with_model({"--jsonl", "-"}), "\"a\"\n{oops\n17\n{\"txt\":\"\"}\n\"b\"\n");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(std::ranges::count(result.out, '\n'), 5);
  EXPECT_TRUE(result.out.starts_with("[97]\n{\"error\":"));
  EXPECT_TRUE(result.out.ends_with("\n[98]\n"));
  EXPECT_THAT(result.out, AllOf(HasSubstr("line 2"), HasSubstr("line 3"), HasSubstr("line 4")));
}

TEST_F(TokenizeCommand, BlankLinesAreBadLines) {
  const Result result = qgen_with_input(with_model({"--jsonl", "-", "--count"}), "\n\"a\"\n \t\r\n\"bc\"\n");
  EXPECT_EQ(result.status, 1);
  EXPECT_EQ(std::ranges::count(result.out, '\n'), 4);
  EXPECT_TRUE(result.out.starts_with("{\"error\":"));
  EXPECT_TRUE(result.out.ends_with("}\n2\n"));
  EXPECT_THAT(result.out, AllOf(HasSubstr("line 1"), HasSubstr("}\n1\n{\"error\":"), HasSubstr("line 3")));
}

TEST_F(TokenizeCommand, LargeInputsAreFast) {
  const std::string text(3'000'000, 'a');
  EXPECT_EQ(qgen_with_input({"tokenize", "--count"}, text).status, 0);
  std::string lines;
  for (int i = 0; i < 50'000; ++i) lines += "\"line\"\n";
  EXPECT_EQ(std::ranges::count(qgen_with_input({"tokenize", "--jsonl", "-", "--count"}, lines).out, '\n'),
            50'000);
  lines = "\"" + text + "\"\n\"b\"\n";
  EXPECT_EQ(std::ranges::count(qgen_with_input({"tokenize", "--jsonl", "-", "--count"}, lines).out, '\n'), 2);
}

TEST_F(TokenizeCommand, NoTextOnATerminalIsAUsageError) {
  Launch launch = test::launch({"tokenize"});
  launch.in = Stream::terminal;
  launch.keep_input_open = true;
  EXPECT_EQ(run(kQgen, launch).status, 2);
}

TEST_F(TokenizeCommand, MissingFilesAreErrors) {
  EXPECT_EQ(qgen({"tokenize", "--jsonl", "/nowhere"}).status, 5);
  EXPECT_EQ(qgen({"tokenize", "-m", "/nowhere", "x"}).status, 5);
  EXPECT_EQ(qgen({"tokenize", "-m", folder_.path().string(), "x"}).status, 5);
}

}  // namespace
}  // namespace qgen::test
