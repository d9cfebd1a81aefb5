// The program on GGUF files: sound ones as Hugging Face transformers computes them (tests/golden), damaged
// ones refused in one line.
#include <gmock/gmock.h>

#include "cli/command.h"
#include "support/gguf_bytes.h"

namespace qgen::test {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;

std::string golden(const std::string& name) {
  return std::string(QGEN_TEST_DATA) + "/golden/gguf/" + name;
}

json expected(const std::string& model) {
  return json::parse(read_file(std::string(QGEN_TEST_DATA) + "/golden/models/" + model + "/expected.json"));
}

class GgufModels : public ::testing::TestWithParam<std::string> {};

TEST_P(GgufModels, AnswersAsTheReferenceDoes) {
  const std::string file = GetParam();
  const json reference = expected(file.substr(0, file.find_first_of(".-")));
  std::string ids;
  for (const json& id : reference["prompt"]) ids += (ids.empty() ? "" : " ") + id.dump();
  EXPECT_EQ(qgen({"tokenize", "-m", golden(file), "--ids", "-p", reference["text"]}).out, ids + "\n");
  const std::string count = std::to_string(reference["reply"].size());
  const Result reply = qgen({"-m", golden(file), "-p", reference["text"], "-n", count, "--greedy",
                             "--ignore-eos", "--kv", "f32", "--json"});
  EXPECT_EQ(reply.err, "");
  EXPECT_EQ(json_of(reply)["tokens"], reference["reply"]);
}

INSTANTIATE_TEST_SUITE_P(Files, GgufModels,
                         ::testing::Values("llama3.gguf", "llama_linear_v4.gguf", "mistral.gguf",
                                           "qwen2.gguf", "qwen3_bf16_gqa2_tied.gguf", "qwen3_moe.gguf",
                                           "qwen3_sharded-00001-of-00002.gguf", "qwen3_yarn_v4.gguf"),
                         [](const auto& tested) {
                           return tested.param.substr(0, tested.param.find_first_of(".-"));
                         });

class GgufFiles : public ::testing::Test {
 protected:
  [[nodiscard]] std::string write(const std::string& name, std::string_view bytes) const {
    write_file(folder_.path() / name, bytes);
    return (folder_.path() / name).string();
  }
  void expect_refused(std::string_view bytes, const std::string& says) const {
    const Result result = qgen({"-m", write("m.gguf", bytes), "-p", "x", "-n", "1"});
    expect_error(result, 5);
    EXPECT_THAT(result.err, HasSubstr(says));
  }

  TempFolder folder_;
};

TEST_F(GgufFiles, AreKnownByTheirFirstBytesToo) {
  const std::string file = write("model", read_file(golden("qwen2.gguf")));
  const Result named = qgen({"-m", golden("qwen2.gguf"), "-p", "The", "-n", "4", "--greedy"});
  const Result unnamed = qgen({"-m", file, "-p", "The", "-n", "4", "--greedy"});
  EXPECT_EQ(unnamed.status, 0) << unnamed.err;
  EXPECT_EQ(unnamed.out, named.out);
  expect_refused("not a model", "the magic \"GGUF\" expected");
}

TEST_F(GgufFiles, BringTheirSamplingSettings) {
  const json reply =
      json_of(qgen({"-m", golden("qwen2.gguf"), "-p", "The", "-n", "8", "--seed", "1", "--json"}));
  const json same = json_of(qgen({"-m", golden("qwen2.gguf"), "-p", "The", "-n", "8", "--seed", "1", "--json",
                                  "--temp", "0.6", "--top-k", "20", "--top-p", "0.95"}));
  const json other = json_of(qgen({"-m", golden("qwen2.gguf"), "-p", "The", "-n", "8", "--seed", "1",
                                   "--json", "--temp", "5", "--top-k", "0", "--top-p", "1"}));
  EXPECT_EQ(reply["tokens"], same["tokens"]);
  EXPECT_NE(reply["tokens"], other["tokens"]);
}

TEST_F(GgufFiles, AreMeasuredLikeFolders) {
  const Result result = qgen({"bench", "-m", golden("qwen2.gguf"), "--bench-prompt", "8", "--bench-gen", "4",
                              "-r", "1", "-o", "json", "--mode", "all"});
  ASSERT_EQ(result.status, 0) << result.err;
  const json row = json_of(result)[0];
  EXPECT_EQ(row["model_type"], "qwen2");
  EXPECT_GT(row["model_size"], 10000);
}

TEST_F(GgufFiles, AMissingPartIsNamed) {
  const std::string first =
      write("m-00001-of-00002.gguf", read_file(golden("qwen3_sharded-00001-of-00002.gguf")));
  const Result result = qgen({"-m", first, "-p", "x"});
  expect_error(result, 5);
  EXPECT_THAT(result.err, AllOf(HasSubstr("m-00002-of-00002.gguf"), HasSubstr("No such file")));
}

TEST_F(GgufFiles, EveryPrefixIsRefused) {
  const std::string whole = read_file(std::string(QGEN_TEST_DATA) + "/fuzz/corpus/gguf_fuzz/llama");
  for (std::size_t size = 0; size < whole.size(); size += size < 120 ? 1 : 13) {
    const Result result = qgen({"-m", write("m.gguf", whole.substr(0, size)), "-p", "x", "-n", "1"});
    ASSERT_EQ(result.status, 5) << size << result.err;
    ASSERT_EQ(result.signal, 0) << size;
    ASSERT_EQ(result.out, "");
  }
}

TEST_F(GgufFiles, DamagedOnesAreRefused) {
  expect_refused(std::string("GGUF\0\0\0\3", 8) + std::string(16, '\0'), "byte order");
  expect_refused(GgufWriter().file(1), "version 1");
  expect_refused(GgufWriter().file(99), "version 99");
  expect_refused("GGML" + std::string(32, '\0'), "magic is \"GGML\"");
  expect_refused("GGUF", "truncated");
  expect_refused(GgufWriter().tensor_entry("t", {1, 0}, 0, 0).file(), "general.architecture");
  expect_refused(GgufWriter().raw("k", GgufType::string, little_endian(std::uint64_t{1} << 40)).file(),
                 "truncated");
  expect_refused(GgufWriter().array("k", GgufType::u8, std::uint64_t{1} << 40, "").file(), "elements of k");
}

TEST_F(GgufFiles, AWrappedDimensionIsRefusedByTheTensorsName) {
  std::string file = read_file(golden("qwen2.gguf"));
  const std::string name = gguf_string("token_embd.weight");
  const std::size_t dims = file.find(name) + name.size() + 4;
  file.replace(dims + 8, 8, little_endian((std::uint64_t{1} << 42) + 1));
  expect_refused(file, "tensor token_embd.weight");
}

TEST_F(GgufFiles, WhatCannotBeRunIsRefusedByName) {
  expect_refused(gguf_config("gemma3").file(), "llama, qwen2, qwen3, qwen3moe");
  std::string file = read_file(golden("llama3.gguf"));
  const std::string gpt2 = gguf_string("gpt2");
  file.replace(file.find(gpt2), gpt2.size(), gguf_string("bert"));
  expect_refused(file, "tokenizer.ggml.model: \"bert\" is not supported");
}

}  // namespace
}  // namespace qgen::test
