// Whole models against Hugging Face transformers: tests/golden/models/<name> is a small random model with
// expected.json, both written by tools/reference/model_golden.py. tests/golden/gguf/<name>.gguf has the same
// weights in another form, written by tools/reference/gguf_models.py, or weights in blocks, by
// blocks_golden.py.
//
// Tolerance. expected.json states how far the reference itself strays from double precision when it computes
// in binary32, when it also rounds the inputs of products to the type of the weights (what kernels for many
// tokens may do) and when it also rounds the cache to binary16. A run here may stray by at most twice the sum
// of those that apply to it: twice, because two computations of one precision that add in different orders
// are two independent draws of the same error.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <random>
#include <string>
#include <vector>

#include "qgen/base/json.h"
#include "qgen/base/mapped_file.h"
#include "qgen/engine/engine.h"
#include "qgen/kernels/kernel_table.h"

namespace qgen {
namespace {

namespace fs = std::filesystem;

/// Tokens and what the reference computes for them.
struct Text {
  std::vector<TokenId> ids;
  std::vector<std::vector<double>> logits;  ///< a row of the listed columns for each position
  std::vector<double> logsumexp;
};

struct Expected {
  std::vector<TokenId> prompt, reply;
  std::vector<std::size_t> columns;
  std::vector<Text> texts;
  double f32_noise = 0, rounded_inputs_noise = 0, kv_f16_noise = 0;
};

std::vector<double> numbers(const Json& list) {
  std::vector<double> result;
  for (const Json& value : *list.as_array()) result.push_back(value.as_double().value());
  return result;
}

template <typename Integer>
std::vector<Integer> integers(const Json& list) {
  std::vector<Integer> result;
  for (const Json& value : *list.as_array()) result.push_back(static_cast<Integer>(value.as_int().value()));
  return result;
}

Expected read_expected(const fs::path& folder) {
  const MappedFile file(folder / "expected.json");
  const Json json = parse_json(as_text(file.bytes()), folder.string());
  Expected expected{.prompt = integers<TokenId>(*json.find("prompt")),
                    .reply = integers<TokenId>(*json.find("reply")),
                    .columns = integers<std::size_t>(*json.find("columns")),
                    .texts = {}};
  const Json& noise = *json.find("noise");
  expected.f32_noise = noise.find("f32")->as_double().value();
  expected.rounded_inputs_noise = noise.find("rounded_inputs")->as_double().value();
  expected.kv_f16_noise = noise.find("kv_f16")->as_double().value();
  for (const Json& text : *json.find("runs")->as_array()) {
    std::vector<std::vector<double>> rows;
    for (const Json& row : *text.find("logits")->as_array()) rows.push_back(numbers(row));
    expected.texts.push_back({integers<TokenId>(*text.find("ids")), rows, numbers(*text.find("logsumexp"))});
  }
  return expected;
}

fs::path models_folder() {
  return fs::path(QGEN_TEST_DATA) / "golden" / "models";
}

std::vector<std::string> model_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(models_folder())) {
    // Others are expectations alone, of GGUF files.
    if (fs::exists(entry.path() / "config.json")) names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

std::vector<std::string> gguf_names() {
  return {"llama3.gguf",
          "llama_linear_v4.gguf",
          "mistral.gguf",
          "qwen2.gguf",
          "qwen3_bf16_gqa2_tied.gguf",
          "qwen3_moe.gguf",
          "qwen3_sharded-00001-of-00002.gguf",
          "qwen3_yarn_v4.gguf"};
}

/// The folder that holds expected.json, and the model unless it is a GGUF file.
fs::path folder_of(const std::string& model) {
  return models_folder() / model.substr(0, model.find_first_of(".-"));
}

Engine open_model(const std::string& model, const EngineOptions& options) {
  if (!model.ends_with(".gguf")) return Engine::from_folder(folder_of(model), options, Log());
  return Engine::from_gguf(models_folder().parent_path() / "gguf" / model, options, Log());
}

/// What computes.
struct Runner {
  std::string device, kernels, kv;
};

std::vector<Runner> runners() {
  std::vector<Runner> all{{"reference", "", "auto"}};
  for (const KernelTable* table : available_kernels()) {
    for (const char* kv : {"f32", "auto"}) all.push_back({"cpu", std::string(table->name), kv});
  }
  return all;
}

double logsumexp(std::span<const float> row) {
  const double most = *std::ranges::max_element(row);
  double sum = 0;
  for (const float value : row) sum += std::exp(static_cast<double>(value) - most);
  return most + std::log(sum);
}

class GoldenModel : public ::testing::TestWithParam<std::tuple<std::string, Runner>> {
 protected:
  GoldenModel()
      : expected_(read_expected(folder_of(std::get<0>(GetParam())))),
        engine_(open_model(std::get<0>(GetParam()), options())) {}

  [[nodiscard]] static EngineOptions options() {
    const Runner& runner = std::get<1>(GetParam());
    EngineOptions options;
    options.device = runner.device;
    options.device_options.threads = 1;
    options.device_options.kernels = runner.kernels;
    options.device_options.kv = runner.kv;
    return options;
  }

  /// `step`: the most tokens that are computed together.
  [[nodiscard]] double tolerance(std::size_t step) const {
    const Runner& runner = std::get<1>(GetParam());
    const bool cpu = runner.device == "cpu";
    const bool rounds_inputs = cpu && step > static_cast<std::size_t>(kManyTokens);
    const bool rounds_cache = cpu && engine_.executor().description().find("f16 cache") != std::string::npos;
    return 2 * (expected_.f32_noise + (rounds_inputs ? expected_.rounded_inputs_noise : 0) +
                (rounds_cache ? expected_.kv_f16_noise : 0));
  }

  /// Feeds ids [position, end) in steps of the given sizes in turn and compares the logits at every position.
  void feed_and_compare(Session& session, const Text& text, const std::vector<std::size_t>& steps) const {
    const std::size_t vocab = static_cast<std::size_t>(engine_.vocab());
    const double allowed = tolerance(*std::ranges::max_element(steps));
    std::size_t turn = 0;
    for (auto at = static_cast<std::size_t>(session.position()); at < text.ids.size();) {
      const std::size_t count = std::min(steps[turn++ % steps.size()], text.ids.size() - at);
      const Logits logits = session.feed(std::span(text.ids).subspan(at, count), Want::all);
      ASSERT_EQ(logits.values.size(), count * vocab);
      for (std::size_t i = 0; i < count; ++i) {
        compare(logits.values.subspan(i * vocab, vocab), text, at + i, allowed);
      }
      at += count;
    }
  }

  void compare(std::span<const float> row, const Text& text, std::size_t position, double allowed) const {
    for (std::size_t i = 0; i < expected_.columns.size(); ++i) {
      ASSERT_NEAR(static_cast<double>(row[expected_.columns[i]]), text.logits[position][i], allowed)
          << "position " << position << ", column " << expected_.columns[i];
    }
    ASSERT_NEAR(logsumexp(row), text.logsumexp[position], allowed) << "position " << position;
  }

  Expected expected_;
  Engine engine_;
};

/// Feeds ids without rounding anything on the way that kernels for many tokens might round.
void feed_exactly(Session& session, std::span<const TokenId> ids) {
  for (std::size_t at = 0; at < ids.size(); at += kFewTokens) {
    session.feed(ids.subspan(at, std::min<std::size_t>(kFewTokens, ids.size() - at)), Want::none);
  }
}

TEST_P(GoldenModel, RunsOnWhatWasAskedFor) {
  const Runner& runner = std::get<1>(GetParam());
  EXPECT_THAT(engine_.executor().description(), ::testing::HasSubstr(runner.device));
  EXPECT_THAT(engine_.executor().description(), ::testing::HasSubstr(runner.kernels));
}

TEST_P(GoldenModel, LogitsOfWholePromptsAreThoseOfTheReference) {
  for (const Text& text : expected_.texts) {
    Session session = engine_.new_session();
    feed_and_compare(session, text, {text.ids.size()});
  }
}

TEST_P(GoldenModel, LogitsTokenByTokenAreThoseOfTheReference) {
  for (const Text& text : expected_.texts) {
    Session session = engine_.new_session();
    feed_and_compare(session, text, {1});
  }
}

TEST_P(GoldenModel, LogitsDoNotDependOnHowPromptsAreCut) {
  std::mt19937 random(7);
  for (const Text& text : expected_.texts) {
    for (const std::size_t most : {16u, 60u}) {
      std::vector<std::size_t> steps(50);
      for (std::size_t& step : steps) step = 1 + random() % most;
      Session session = engine_.new_session();
      feed_and_compare(session, text, steps);
    }
  }
}

TEST_P(GoldenModel, GreedyReplyIsThatOfTheReference) {
  Session session = engine_.new_session();
  std::vector<TokenId> reply{session.feed(expected_.prompt, Want::best).best};
  while (reply.size() < expected_.reply.size()) {
    reply.push_back(session.feed(std::span(&reply.back(), 1), Want::best).best);
  }
  EXPECT_EQ(reply, expected_.reply);
}

TEST_P(GoldenModel, RewoundSessionsGoOnAsIfNothingHadBeen) {
  for (const Text& text : expected_.texts) {
    Session session = engine_.new_session();
    std::vector<TokenId> other(text.ids.rbegin(), text.ids.rend());
    const std::size_t kept = text.ids.size() * 2 / 3;
    std::copy_n(text.ids.begin(), kept, other.begin());
    feed_exactly(session, other);
    session.rewind(static_cast<std::int64_t>(kept));
    feed_and_compare(session, text, {5, 1});
    session.rewind(0);
    feed_and_compare(session, text, {text.ids.size()});
  }
}

TEST_P(GoldenModel, ForksGoOnIndependently) {
  for (const Text& text : expected_.texts) {
    Session session = engine_.new_session();
    const std::size_t shared = text.ids.size() / 2;
    feed_exactly(session, std::span(text.ids).first(shared));
    Session fork = session.fork();
    const std::vector<TokenId> other(text.ids.rbegin(), text.ids.rend());
    feed_exactly(session, std::span(other).first(20));
    feed_and_compare(fork, text, {3});
    session.rewind(static_cast<std::int64_t>(shared));
    feed_and_compare(session, text, {4});
  }
}

std::string test_name(const ::testing::TestParamInfo<GoldenModel::ParamType>& info) {
  const auto& [model, runner] = info.param;
  std::string name = model;
  std::ranges::replace_if(
      name, [](char c) { return c == '.' || c == '-'; }, '_');
  return name + "_" + runner.device +
         (runner.kernels.empty() ? "" : "_" + runner.kernels + "_kv_" + runner.kv);
}

INSTANTIATE_TEST_SUITE_P(Models, GoldenModel,
                         ::testing::Combine(::testing::ValuesIn(model_names()),
                                            ::testing::ValuesIn(runners())),
                         test_name);

INSTANTIATE_TEST_SUITE_P(GgufFiles, GoldenModel,
                         ::testing::Combine(::testing::ValuesIn(gguf_names()),
                                            ::testing::Values(Runner{"reference", "", "auto"},
                                                              Runner{"cpu", "scalar", "auto"})),
                         test_name);

// Kernels have a product for each way of holding blocks.
INSTANTIATE_TEST_SUITE_P(GgufBlocks, GoldenModel,
                         ::testing::Combine(::testing::Values("qwen3_blocks_exact.gguf",
                                                              "qwen3_blocks_rounded.gguf"),
                                            ::testing::ValuesIn(runners())),
                         test_name);

}  // namespace
}  // namespace qgen
