// qgen quantize as a script sees it.
#include <gmock/gmock.h>
#include <signal.h>

#include <set>

#include "cli/command.h"
#include "qgen/tensor/block_format.h"
#include "qgen/weights/gguf.h"
#include "support/safetensors_bytes.h"

namespace qgen::test {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using ::testing::HasSubstr;

std::string golden(const std::string& name) {
  return std::string(QGEN_TEST_DATA) + "/golden/" + name;
}

std::vector<float> values_of(const StoredTensor& tensor) {
  std::int64_t n = 1;
  for (const std::int64_t size : tensor.shape) n *= size;
  std::vector<float> values(static_cast<std::size_t>(n));
  dequantizer(tensor.dtype)(tensor.data.data(), n, values.data());
  return values;
}

class Quantize : public ::testing::Test {
 protected:
  [[nodiscard]] std::string out() const { return (folder_.path() / "out.gguf").string(); }
  [[nodiscard]] Result quantize(const std::string& model, const std::string& type,
                                std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{"quantize", "-m", model, "--type", type, "-o", out()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return qgen(arguments);
  }
  [[nodiscard]] std::set<std::string> left() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_.path())) {
      names.insert(entry.path().filename().string());
    }
    return names;
  }

  TempFolder folder_;
};

class QuantizeFolder : public Quantize, public ::testing::WithParamInterface<const char*> {};

TEST_P(QuantizeFolder, WithoutRoundingGivesTheReplyOfTheReference) {
  const std::string model = golden("models/") + GetParam();
  const Result written = quantize(model, "f32");
  ASSERT_EQ(written.status, 0) << written.err;
  EXPECT_EQ(written.out + written.err, "");
  const json reference = json::parse(read_file(model + "/expected.json"));
  const json reply =
      json_of(qgen({"-m", out(), "-p", reference["text"], "-n", std::to_string(reference["reply"].size()),
                    "--greedy", "--ignore-eos", "--kv", "f32", "--json"}));
  EXPECT_EQ(reply["tokens"], reference["reply"]);
  EXPECT_EQ(reply["usage"]["prompt_tokens"], reference["prompt"].size());
}

INSTANTIATE_TEST_SUITE_P(Folders, QuantizeFolder,
                         ::testing::Values("llama3", "llama_linear_v4", "mistral", "qwen2",
                                           "qwen3_bf16_gqa2_tied", "qwen3_bias", "qwen3_f16_gqa4",
                                           "qwen3_f32_gqa1", "qwen3_moe", "qwen3_sharded", "qwen3_yarn_v4"));

class QuantizeTensors : public QuantizeFolder {};

TEST_P(QuantizeTensors, HaveNamesShapesAndOrderOfRowsOfTheReferenceConverter) {
  ASSERT_EQ(quantize(golden("models/") + GetParam(), "f32").status, 0);
  const Gguf ours = Gguf::open(out()), theirs = Gguf::open(golden("gguf/") + GetParam() + ".gguf");
  EXPECT_EQ(ours.tensors().size(), theirs.tensors().size());
  for (const GgufTensor& expected : theirs.tensors()) {
    const auto found = std::ranges::find(ours.tensors(), expected.name, &GgufTensor::name);
    ASSERT_NE(found, ours.tensors().end()) << expected.name;
    EXPECT_EQ(found->tensor.shape, expected.tensor.shape) << expected.name;
    const std::vector<float> values = values_of(found->tensor), wanted = values_of(expected.tensor);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
      // The divisors of frequencies are computed, everything else is copied.
      const float tolerance = expected.name == "rope_freqs.weight" ? 1e-5f * wanted[i] : 0;
      ASSERT_NEAR(values[i], wanted[i], tolerance) << expected.name << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Folders, QuantizeTensors,
                         ::testing::Values("llama3", "llama_linear_v4", "mistral", "qwen2",
                                           "qwen3_bf16_gqa2_tied", "qwen3_moe", "qwen3_yarn_v4"));

TEST_F(Quantize, RefusesFrequenciesThatGgufCannotSay) {
  const Result result = quantize(golden("models/qwen3_yarn_v5"), "f16");
  expect_error(result, 5);
  EXPECT_THAT(result.err, HasSubstr("yarn without truncate"));
  EXPECT_TRUE(left().empty());
}

TEST_F(Quantize, TypesGoToTheTensorsThatTheHelpNames) {
  const std::string model = golden("models/qwen3_bf16_gqa2_tied");
  const Result result = quantize(model, "q4_0", {"--head", "q8_0"});
  ASSERT_EQ(result.status, 0) << result.err;
  std::int64_t blocks = 0;
  const Gguf file = Gguf::open(out());
  for (const auto& [name, tensor] : file.tensors()) {
    const bool fits = tensor.shape.back() % 32 == 0;
    if (tensor.shape.size() == 1) {
      EXPECT_EQ(tensor.dtype, DType::f32) << name;
    } else if (!fits) {
      EXPECT_EQ(tensor.dtype, DType::f16) << name;
    } else {
      EXPECT_EQ(tensor.dtype, name == "token_embd.weight" ? DType::q8_0 : DType::q4_0) << name;
      ++blocks;
    }
  }
  EXPECT_GT(blocks, 0);
  const json reply = json_of(qgen({"-m", out(), "-p", "a", "-n", "4", "--ignore-eos", "--json"}));
  EXPECT_EQ(reply["tokens"].size(), 4u);
}

TEST_F(Quantize, GgufToGgufKeepsMetadataAndWhatHasTheType) {
  const std::string first = (folder_.path() / "first.gguf").string();
  ASSERT_EQ(qgen({"quantize", "-m", golden("models/qwen2"), "--type", "q8_0", "-o", first, "--quiet"}).status,
            0);
  ASSERT_EQ(quantize(first, "q8_0", {"--quiet"}).status, 0);
  const Gguf a = Gguf::open(first), b = Gguf::open(out());
  ASSERT_EQ(a.metadata().entries().size(), b.metadata().entries().size());
  for (const auto& [key, value] : a.metadata().entries()) {
    ASSERT_NE(b.metadata().find(key), nullptr) << key;
    EXPECT_EQ(as_text(b.metadata().find(key)->bytes), as_text(value.bytes)) << key;
  }
  ASSERT_EQ(a.tensors().size(), b.tensors().size());
  for (std::size_t i = 0; i < a.tensors().size(); ++i) {
    EXPECT_EQ(a.tensors()[i].name, b.tensors()[i].name);
    EXPECT_EQ(as_text(a.tensors()[i].tensor.data), as_text(b.tensors()[i].tensor.data));
  }
}

TEST_F(Quantize, ReadsAllPartsOfASplitFileAndWritesOne) {
  ASSERT_EQ(quantize(golden("gguf/qwen3_sharded-00001-of-00002.gguf"), "f32").status, 0);
  const Gguf whole = Gguf::open(out());
  EXPECT_EQ(whole.metadata().find("split.count"), nullptr);
  EXPECT_EQ(whole.tensors().size(),
            Gguf::open(golden("gguf/qwen3_sharded-00001-of-00002.gguf")).tensors().size());
}

TEST_F(Quantize, IsTheSameForAnyNumberOfThreads) {
  const std::string model = golden("models/qwen3_f32_gqa1");
  ASSERT_EQ(quantize(model, "q4_0", {"-t", "1", "--quiet"}).status, 0);
  const std::string one = read_file(out());
  ASSERT_EQ(quantize(model, "q4_0", {"-t", "5", "--quiet"}).status, 0);
  EXPECT_TRUE(read_file(out()) == one);
}

TEST_F(Quantize, KeepsTemplateEndTokensAndStartToken) {
  ScriptedModel story = short_story();
  story.adds_start = true;
  story.chat_template = "{{ messages[0].content }}";
  const ModelFolder model(story);
  ASSERT_EQ(quantize(model.path(), "f32").status, 0);
  const Gguf file = Gguf::open(out());
  EXPECT_EQ(file.metadata().text("tokenizer.chat_template"), story.chat_template);
  EXPECT_EQ(file.metadata().integer("tokenizer.ggml.eos_token_id", 0, 999), ScriptedModel::kEnd);
  EXPECT_EQ(file.metadata().integer("tokenizer.ggml.eot_token_id", 0, 999), ScriptedModel::kOtherEnd);
  EXPECT_EQ(file.metadata().integer("tokenizer.ggml.bos_token_id", 0, 999), ScriptedModel::kStart);
  EXPECT_EQ(file.metadata().boolean("tokenizer.ggml.add_bos_token"), true);
  EXPECT_EQ(file.metadata().number("general.sampling.temp", 0, 9), 0);
  EXPECT_EQ(file.metadata().texts("tokenizer.ggml.tokens")->size(), std::size_t{ScriptedModel::kRows});
  EXPECT_EQ(qgen({"-m", out(), "--raw", "-p", "a"}).out, "bcdef");
  EXPECT_EQ(qgen({"tokenize", "-m", out(), "--ids", "-p", "a"}).out, "258 97\n");
}

TEST_F(Quantize, SaysWhatRowsDoNotFit) {
  const ModelFolder model(short_story());
  const Result result = quantize(model.path(), "q4_k");
  EXPECT_EQ(result.status, 0);
  EXPECT_THAT(result.err, HasSubstr("no multiple of 256, the block of Q4_K"));
  EXPECT_EQ(quantize(model.path(), "q4_k", {"--quiet"}).err, "");
}

TEST_F(Quantize, RefusesWhatMakesNoSense) {
  const std::string model = golden("models/qwen2");
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {"quantize", "--type", "q8_0", "-o", out()},
           {"quantize", "-m", model, "-o", out()},
           {"quantize", "-m", model, "--type", "q8_0"},
           {"quantize", "-m", model, "--type", "q5_x", "-o", out()},
           {"quantize", "-m", model, "--type", "q8_0", "-o", "-"},
           {"quantize", "-m", model, "--type", "q8_0", "--head", "q9", "-o", out()},
           {"quantize", "-m", model, "--type", "q8_0", "-o", out(), "more"}}) {
    expect_error(qgen(arguments), 2);
  }
  expect_error(qgen({"quantize", "-m", folder_.path() / "absent", "--type", "q8_0", "-o", out()}), 5);
  EXPECT_TRUE(left().empty());
}

TEST_F(Quantize, NeverOverwritesItsInput) {
  const ModelFolder model(short_story());
  const std::string weights = model.file("model.safetensors").string();
  const std::string before = read_file(weights);
  expect_error(qgen({"quantize", "-m", model.path(), "--type", "f16", "-o", weights}), 2);
  EXPECT_TRUE(read_file(weights) == before);
  ASSERT_EQ(quantize(model.path(), "f16").status, 0);
  fs::create_symlink("out.gguf", folder_.path() / "link");
  expect_error(qgen({"quantize", "-m", out(), "--type", "f16", "-o", (folder_.path() / "link").string()}), 2);
}

TEST_F(Quantize, ReplacesAnotherFileAtOnce) {
  write_file(out(), "something else");
  ASSERT_EQ(quantize(golden("models/qwen2"), "f16").status, 0);
  EXPECT_TRUE(is_gguf(out()));
  EXPECT_EQ(left(), std::set<std::string>{"out.gguf"});
}

TEST_F(Quantize, OutputThatCannotBeWrittenExits8AndLeavesNothing) {
  const std::string model = golden("models/qwen2");
  expect_error(qgen({"quantize", "-m", model, "--type", "f16", "-o", (folder_.path() / "no/out").string()}),
               8);
  expect_error(qgen({"quantize", "-m", model, "--type", "f16", "-o", folder_.path()}), 8);
  write_file(out(), "old");
  Launch limited = launch({"quantize", "-m", model, "--type", "f16", "-o", out()});
  limited.file_size = 20'000;
  expect_error(run(kQgen, limited), 8);
  EXPECT_EQ(left(), std::set<std::string>{"out.gguf"});
  EXPECT_EQ(read_file(out()), "old");
}

TEST_F(Quantize, NamesTheTensorWithAValueThatIsNotFinite) {
  ScriptedModel story = short_story();
  story.not_finite = true;
  const ModelFolder model(story);
  const Result result = quantize(model.path(), "f16");
  expect_error(result, 5);
  EXPECT_THAT(result.err, HasSubstr("token_embd.weight"));
  EXPECT_TRUE(left().empty());
}

/// A model whose feed-forward part takes long to quantise; its file has a hole in place of weights.
class QuantizeForLong : public Quantize {
 protected:
  QuantizeForLong() {
    constexpr std::int64_t kHidden = 2'000'000;
    SafetensorsWriter tensors("BF16", 2);
    tensors.add("model.embed_tokens.weight", {264, 256});
    tensors.add("model.norm.weight", {256});
    const std::string layer = "model.layers.0.";
    for (const char* name : {"input_layernorm", "post_attention_layernorm"}) {
      tensors.add(layer + name + ".weight", {256});
    }
    for (const char* name : {"q", "k", "v", "o"}) {
      tensors.add(layer + "self_attn." + name + "_proj.weight", {256, 256});
    }
    tensors.add(layer + "mlp.gate_proj.weight", {kHidden, 256});
    tensors.add(layer + "mlp.up_proj.weight", {kHidden, 256});
    tensors.add(layer + "mlp.down_proj.weight", {256, kHidden});
    const fs::path weights = model_.file("model.safetensors");
    write_file(weights, tensors.front());
    fs::resize_file(weights, tensors.front().size() + tensors.size());
    write_file(model_.file("config.json"),
               R"({"model_type":"llama","hidden_size":256,"intermediate_size":)" + std::to_string(kHidden) +
                   R"(,"num_attention_heads":1,"num_hidden_layers":1,"vocab_size":264,)"
                   R"("max_position_embeddings":64,"tie_word_embeddings":true})");
  }

  [[nodiscard]] Launch long_run() const {
    return launch({"quantize", "-m", model_.path(), "--type", "q4_k", "-o", out(), "--verbose"});
  }

  ModelFolder model_{short_story()};
};

TEST_F(QuantizeForLong, InterruptLeavesNothing) {
  for (const int signal : {SIGINT, SIGTERM}) {
    Process process(kQgen, long_run());
    ASSERT_TRUE(process.wait_for_errors("ffn_"));
    process.send(signal);
    const Result result = process.finish();
    EXPECT_EQ(result.status, 130);
    EXPECT_EQ(result.out, "");
    EXPECT_TRUE(left().empty());
  }
}

TEST_F(QuantizeForLong, SuddenDeathLeavesNothingUnderTheName) {
  write_file(out(), "old");
  Process process(kQgen, long_run());
  ASSERT_TRUE(process.wait_for_errors("ffn_"));
  process.send(SIGKILL);
  EXPECT_EQ(process.finish().signal, SIGKILL);
  EXPECT_EQ(read_file(out()), "old");
}

}  // namespace
}  // namespace qgen::test
