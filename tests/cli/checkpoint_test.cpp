// Checkpoints of torch.save against independent models; see tools/reference/torch_golden.py for the files.
#include <gmock/gmock.h>

#include "cli/command.h"
#include "support/torch_bytes.h"

namespace qgen::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

using Arguments = std::vector<std::string>;

std::string file(const std::string& name) {
  return std::string(QGEN_TEST_DATA) + "/golden/torch/" + name;
}

std::string ids_line(const json& ids) {
  std::string line;
  for (const json& id : ids) line += (line.empty() ? "" : " ") + id.dump();
  return line + "\n";
}

Arguments joined(Arguments first, const Arguments& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

Arguments course_vocabulary() {
  return {"--vocab", file("course/vocab.pkl"), "--merges", file("course/merges.pkl")};
}

Arguments course_options() {
  return joined({"--checkpoint", file("course/ckpt.pt")}, course_vocabulary());
}

/// One way to name a model, and the file of its expectations.
struct Form {
  std::string name;
  Arguments options;
  std::string expected;
};

void PrintTo(const Form& form, std::ostream* out) {
  *out << form.name;
}

std::vector<Form> course_forms() {
  const std::string expected = "course/expected.json";
  return {{"dict", course_options(), expected},
          {"compiled", joined({"--checkpoint", file("course/compiled.pt")}, course_vocabulary()), expected},
          {"bare",
           joined({"--checkpoint", file("course/bare.pt"), "--heads", "3", "-c", "48"}, course_vocabulary()),
           expected},
          {"tied", joined({"--checkpoint", file("course/tied.pt")}, course_vocabulary()),
           "course/expected_tied.json"},
          {"texts",
           {"--checkpoint", file("course/ckpt.pt"), "--vocab", file("course/vocab.json"), "--merges",
            file("course/merges.txt")},
           expected}};
}

std::vector<Form> book_forms() {
  return {
      {"book",
       {"--checkpoint", file("book/qwen3-tiny-base.pth"), "--tokenizer", file("book/tokenizer-base.json")},
       "book/expected.json"}};
}

class Checkpoints : public ::testing::TestWithParam<Form> {
 protected:
  [[nodiscard]] static json expected() { return json::parse(read_file(file(GetParam().expected))); }
  [[nodiscard]] static json reply(const Arguments& more) {
    const json reference = expected();
    const Arguments common{"-p", reference["text"], "--greedy", "--ignore-eos", "--json"};
    return json_of(qgen(joined(joined(GetParam().options, common), more)));
  }
};

TEST_P(Checkpoints, GreedyReplyIsThatOfTheReference) {
  const json reference = expected();
  const json answer = reply({"-n", std::to_string(reference["reply"].size())});
  EXPECT_EQ(answer["tokens"], reference["reply"]);
  EXPECT_EQ(answer["usage"]["prompt_tokens"], reference["prompt"].size());
}

/// Both sides compute in double precision; what is left is the rounding of the expectations to five digits
/// and of the rotary tables to binary32.
TEST_P(Checkpoints, ProbabilitiesAreThoseOfTheReference) {
  constexpr double kTolerance = 1e-4;
  const json reference = expected();
  const std::size_t count = reference["reply"].size();
  const json answer = reply({"-n", std::to_string(count), "--logprobs", "100", "--device", "reference"});
  std::size_t compared = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t position = reference["prompt"].size() - 1 + i;
    for (const json& token : answer["logprobs"]["content"][i]["top_logprobs"]) {
      const auto column = std::ranges::find(reference["columns"], token["id"]);
      if (column == reference["columns"].end()) continue;
      const auto index = static_cast<std::size_t>(column - reference["columns"].begin());
      const double logprob =
          reference["logits"][position][index].get<double>() - reference["logsumexp"][position].get<double>();
      EXPECT_NEAR(token["logprob"].get<double>(), logprob, kTolerance) << "reply position " << i;
      ++compared;
    }
  }
  EXPECT_GT(compared, 10U);
}

class CourseCheckpoints : public Checkpoints {};

TEST_P(CourseCheckpoints, TheTextbookLoopOverTheLastTokensGivesTheSame) {
  const json reference = expected();
  const std::string count = std::to_string(reference["slide"].size());
  EXPECT_EQ(reply({"-n", count, "--mode", "naive", "--context-full", "slide"})["tokens"], reference["slide"]);
}

constexpr auto kFormName = [](const auto& form) { return form.param.name; };
INSTANTIATE_TEST_SUITE_P(Course, Checkpoints, ::testing::ValuesIn(course_forms()), kFormName);
INSTANTIATE_TEST_SUITE_P(Book, Checkpoints, ::testing::ValuesIn(book_forms()), kFormName);
INSTANTIATE_TEST_SUITE_P(Course, CourseCheckpoints, ::testing::ValuesIn(course_forms()), kFormName);

TEST(CheckpointTokens, AreThoseOfTheReferenceWithTheTokenizersFilesAlone) {
  const json course = json::parse(read_file(file("course/expected.json")));
  for (const Arguments& files :
       {course_vocabulary(),
        {"--vocab", file("course/vocab_protocol2.pkl"), "--merges", file("course/merges_protocol2.pkl")},
        {"--vocab", file("course/vocab.json"), "--merges", file("course/merges.txt")}}) {
    const Arguments command = joined({"tokenize", "--ids", "-p", course["text"]}, files);
    EXPECT_EQ(qgen(command).out, ids_line(course["prompt"]));
  }
  const json book = json::parse(read_file(file("book/expected.json")));
  EXPECT_EQ(
      qgen({"tokenize", "--ids", "-p", book["text"], "--tokenizer", file("book/tokenizer-base.json")}).out,
      ids_line(book["prompt"]));
}

TEST(CheckpointTokens, EndOfTextIsAControlTokenAndOthersDecodeToTheirBytes) {
  const Arguments files = course_vocabulary();
  EXPECT_EQ(qgen(joined({"tokenize", "--ids", "--parse-special", "-p", "a<|endoftext|>"}, files)).out,
            "98 0\n");
  EXPECT_EQ(qgen(joined({"tokenize", "--count", "-p", "a<|endoftext|>"}, files)).out, "14\n");
  EXPECT_EQ(qgen_with_input(joined({"tokenize", "--decode"}, files), "0 196 170").out,
            "<|endoftext|>\xC3\xA9");
}

TEST(CheckpointRuns, SamplingOptionsOfTheCourseWork) {
  const Arguments sampling{"--prompt", "The cat", "--max_tokens", "5",           "--temperature",
                           "0.7",      "--top_k", "20",           "--top_p",     "0.9",
                           "--seed",   "3",       "--json",       "--ignore-eos"};
  const json reply = json_of(qgen(joined(course_options(), sampling)));
  EXPECT_EQ(reply["tokens"].size(), 5U);
  EXPECT_EQ(reply["stop"], "length");
  EXPECT_EQ(json_of(qgen(joined(course_options(), sampling)))["tokens"], reply["tokens"]);
}

TEST(CheckpointRuns, BenchMeasuresThem) {
  const json rows = json::parse(qgen(joined(course_options(), {"--bench", "-p", "8", "-n", "4", "-r", "1",
                                                               "--mode", "all", "-o", "json"}))
                                    .out);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0]["model_type"], "llama");
}

TEST(CheckpointRuns, AContextBeyondTheStatedOneIsRefusedAndAnUnknownOneCanBeChosen) {
  expect_error(qgen(joined(course_options(), {"-p", "a", "-c", "49"})), 2);
  const Arguments bare = joined(
      {"--checkpoint", file("course/bare.pt"), "--heads", "3", "-p", "a", "-n", "0"}, course_vocabulary());
  EXPECT_THAT(qgen(joined(bare, {"--verbose"})).err, HasSubstr("context 256"));
  EXPECT_THAT(qgen(joined(bare, {"--verbose", "-c", "1000"})).err, HasSubstr("context 1000"));
}

TEST(CheckpointErrors, WithoutHeadsTheOptionIsNamed) {
  const Result result =
      qgen(joined({"--checkpoint", file("course/bare.pt"), "-p", "a"}, course_vocabulary()));
  expect_error(result, 2);
  EXPECT_THAT(result.err, HasSubstr("--heads N"));
}

TEST(CheckpointErrors, OptionsThatDoNotGoTogetherSayWhatDoes) {
  const std::string checkpoint = file("course/ckpt.pt"), vocab = file("course/vocab.pkl");
  const std::string merges = file("course/merges.pkl"), tokenizer = file("book/tokenizer-base.json");
  for (const auto& [options, says] : std::vector<std::pair<Arguments, std::string>>{
           {{"--checkpoint", checkpoint}, "--vocab FILE and --merges FILE, or --tokenizer FILE"},
           {{"--checkpoint", checkpoint, "--vocab", vocab}, "--merges FILE is missing"},
           {{"--checkpoint", checkpoint, "--merges", merges}, "--vocab FILE is missing"},
           {{"--checkpoint", checkpoint, "--vocab", vocab, "--merges", merges, "--tokenizer", tokenizer},
            "exclude"},
           {{"--checkpoint", checkpoint, "-m", "x"}, "either -m, or --checkpoint"},
           {{"--vocab", vocab, "--merges", merges}, "--checkpoint FILE"},
           {{"-m", "x", "--tokenizer", tokenizer}, "either -m, or --checkpoint"},
           {{"--heads", "2"}, "--checkpoint FILE"},
           {{"--checkpoint", checkpoint, "--tokenizer", tokenizer, "--heads", "0"}, "--heads"},
           {{"--checkpoint", ""}, "path is empty"}}) {
    const Result result = qgen(joined({"-p", "a"}, options));
    expect_error(result, 2);
    EXPECT_THAT(result.err, HasSubstr(says));
  }
  expect_error(qgen({"tokenize", "-p", "a", "--vocab", vocab}), 2);
  expect_error(qgen({"tokenize", "-p", "a", "-m", "x", "--tokenizer", tokenizer}), 2);
}

TEST(CheckpointErrors, TheVocabularyMustFitTheModel) {
  const Result result = qgen({"--checkpoint", file("book/qwen3-tiny-base.pth"), "--vocab",
                              file("course/vocab.pkl"), "--merges", file("course/merges.pkl"), "-p", "a"});
  expect_error(result, 5);
  EXPECT_THAT(result.err, AllOf(HasSubstr("272"), HasSubstr("280")));
}

TEST(CheckpointErrors, CheckpointsUnderMAreToldHowTheyAreGiven) {
  const Result result = qgen({"-m", file("course/ckpt.pt"), "-p", "a"});
  expect_error(result, 5);
  EXPECT_THAT(result.err, HasSubstr("--checkpoint FILE"));
}

/// Runs what a file says when Python loads it; here it must not run, whatever comes of it.
TEST(CheckpointErrors, CommandsInFilesAreNeverExecuted) {
  TempFolder folder;
  const std::string trace = (folder.path() / "trace").string();
  const std::string command = pickled_call(pickled_global("os", "system"), {pickled_text("touch " + trace)});
  const std::string evil_vocabulary = (folder.path() / "vocab.pkl").string();
  write_file(evil_vocabulary, pickle(pickled_dict({"K\x01", command})));
  const std::string evil = (folder.path() / "evil.pt").string();
  for (const std::string& root : {command, pickled_dict({pickled_text("model"), command}),
                                  pickled_dict({pickled_text("token_embeddings.weight"), command})}) {
    write_file(evil, TorchBytes().file(root));
    const Result result = qgen(joined({"--checkpoint", evil, "-p", "a"}, course_vocabulary()));
    expect_error(result, 5);
    EXPECT_THAT(result.err, HasSubstr("os.system"));
  }
  const Result result =
      qgen({"tokenize", "-p", "a", "--vocab", evil_vocabulary, "--merges", file("course/merges.pkl")});
  expect_error(result, 5);
  EXPECT_THAT(result.err, HasSubstr("os.system"));
  EXPECT_FALSE(std::filesystem::exists(trace));
}

TEST(CheckpointErrors, DamagedFilesAreRefused) {
  TempFolder folder;
  const std::string path = (folder.path() / "ckpt.pt").string();
  const std::string whole = read_file(file("course/ckpt.pt"));
  for (const std::size_t size : {std::size_t{0}, std::size_t{100}, whole.size() / 2, whole.size() - 1}) {
    write_file(path, whole.substr(0, size));
    const Result result = qgen(joined({"--checkpoint", path, "-p", "a"}, course_vocabulary()));
    expect_error(result, 5);
    EXPECT_THAT(result.err, HasSubstr("ckpt.pt"));
  }
  expect_error(
      qgen(joined({"--checkpoint", (folder.path() / "none.pt").string(), "-p", "a"}, course_vocabulary())),
      5);
}

}  // namespace
}  // namespace qgen::test
