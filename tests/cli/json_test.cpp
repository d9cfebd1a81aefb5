// The JSON shapes that programs read.
#include <gmock/gmock.h>

#include <cmath>
#include <sstream>

#include "cli/command.h"

namespace qgen::test {
namespace {

using nlohmann::json;

std::vector<json> lines_of(const std::string& text) {
  std::vector<json> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(json::parse(line));
  return lines;
}

TEST(JsonReply, HasTheAgreedFields) {
  const Result result = qgen({"-p", "Once upon a time", "-n", "8", "--json", "--seed", "9"});
  EXPECT_EQ(result.status, 0);
  EXPECT_TRUE(result.out.ends_with("}\n"));
  const json reply = json_of(result);
  EXPECT_EQ(reply["seed"], 9);
  EXPECT_EQ(reply["stop"], "length");
  EXPECT_EQ(reply["tokens"].size(), 8U);
  EXPECT_EQ(reply["usage"]["completion_tokens"], 8);
  EXPECT_GT(reply["usage"]["prompt_tokens"], 0);
  EXPECT_FALSE(reply.contains("logprobs"));
  for (const std::string key :
       {"load_s", "prefill_s", "first_token_s", "decode_s", "prefill_tok_s", "decode_tok_s"}) {
    ASSERT_TRUE(reply["timings"].contains(key)) << key;
    EXPECT_GT(reply["timings"][key].get<double>(), 0) << key;
  }
  EXPECT_EQ(reply["text"], qgen({"-p", "Once upon a time", "-n", "8", "--seed", "9"}).out);
}

TEST(JsonReply, RatesTimesTimesAreCounts) {
  const json reply = json_of(qgen({"-p", "Once upon a time", "-n", "20", "--ignore-eos", "--json"}));
  const json& timings = reply["timings"];
  EXPECT_NEAR(timings["prefill_tok_s"].get<double>() * timings["prefill_s"].get<double>(),
              reply["usage"]["prompt_tokens"].get<double>(), 1e-6);
  EXPECT_NEAR(timings["decode_tok_s"].get<double>() * timings["decode_s"].get<double>(), 19, 1e-6);
}

TEST(JsonReply, NoTokensAreNoRate) {
  const json reply = json_of(qgen({"-p", "x", "-n", "0", "--json"}));
  EXPECT_EQ(reply["text"], "");
  EXPECT_EQ(reply["tokens"], json::array());
  EXPECT_TRUE(reply["timings"]["decode_tok_s"].is_null());
  EXPECT_TRUE(json_of(qgen({"-p", "x", "-n", "1", "--json"}))["timings"]["decode_tok_s"].is_null());
}

TEST(JsonReply, EchoAddsThePrompt) {
  EXPECT_EQ(json_of(qgen({"-p", "x", "-n", "0", "--json", "--echo"}))["prompt"], "x");
}

TEST(JsonReply, SeedsOf64BitsAreExact) {
  const Result result = qgen({"-p", "x", "-n", "1", "--json", "--seed", "18446744073709551615"});
  EXPECT_EQ(json_of(result)["seed"].get<std::uint64_t>(), 18446744073709551615U);
}

TEST(JsonStream, HasALineForEachTokenAndOneForTheEnd) {
  const Result result = qgen({"-p", "Once", "-n", "6", "--ignore-eos", "--json-stream", "--seed", "2"});
  const std::vector<json> lines = lines_of(result.out);
  ASSERT_GE(lines.size(), 7U);
  std::string text;
  std::vector<int> ids;
  for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
    EXPECT_EQ(lines[i]["event"], "token");
    text += lines[i]["text"].get<std::string>();
    if (!lines[i]["id"].is_null()) ids.push_back(lines[i]["id"].get<int>());
  }
  const json& end = lines.back();
  EXPECT_EQ(end["event"], "end");
  EXPECT_FALSE(end.contains("text"));
  EXPECT_EQ(end["tokens"], ids);
  EXPECT_EQ(end["stop"], "length");
  EXPECT_EQ(end["usage"]["completion_tokens"], 6);
  EXPECT_EQ(text, qgen({"-p", "Once", "-n", "6", "--ignore-eos", "--seed", "2"}).out);
}

TEST(JsonLogprobs, FollowTheAgreedShape) {
  const json reply = json_of(
      qgen({"-p", "Once upon a", "-n", "4", "--ignore-eos", "--greedy", "--json", "--logprobs", "3"}));
  const json& content = reply["logprobs"]["content"];
  ASSERT_EQ(content.size(), 4U);
  std::string bytes;
  for (std::size_t i = 0; i < content.size(); ++i) {
    const json& token = content[i];
    EXPECT_EQ(token["id"], reply["tokens"][i]);
    EXPECT_LE(token["logprob"].get<double>(), 0);
    ASSERT_EQ(token["top_logprobs"].size(), 3U);
    EXPECT_EQ(token["top_logprobs"][0]["id"], token["id"]);
    EXPECT_EQ(token["top_logprobs"][0]["logprob"], token["logprob"]);
    EXPECT_GE(token["top_logprobs"][0]["logprob"].get<double>(),
              token["top_logprobs"][1]["logprob"].get<double>());
    for (const json& byte : token["bytes"]) bytes += static_cast<char>(byte.get<int>());
  }
  EXPECT_EQ(bytes, reply["text"]);
}

TEST(JsonLogprobs, BytesThatAreNoCharactersAreInBytes) {
  ScriptedModel model;
  model.chain("A\xe5\x8d\x95").next[0x95] = ScriptedModel::kEnd;
  const ModelFolder folder(model);
  const json reply = json_of(qgen({"-m", folder.path(), "-p", "A", "--json", "--logprobs", "0"}));
  const json& content = reply["logprobs"]["content"];
  ASSERT_EQ(content.size(), 3U);
  EXPECT_EQ(content[0]["token"], "\xef\xbf\xbd");
  EXPECT_EQ(content[0]["bytes"], json::array({0xe5}));
  EXPECT_EQ(content[0]["top_logprobs"], json::array());
  // exp(17) / (exp(17) + 258) of the 259 tokens, 17 being about sqrt(264) / 1: nearly certain.
  EXPECT_NEAR(content[0]["logprob"].get<double>(), 0, 1e-4);
}

}  // namespace
}  // namespace qgen::test
