// What rounding costs with the built-in model and a text of its own: mean Kullback-Leibler divergence from
// its weights as they are, which other tests hold against the reference implementation. Bounds are about
// twice what it is.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "qgen/engine/engine.h"
#include "qgen/kernels/kernel_table.h"
#include "support/files.h"

namespace qgen {
namespace {

constexpr std::size_t kTokens = 200;  // enough for the arithmetic of prompts

Engine load(const char* weights, const char* kv, std::string_view kernels) {
  EngineOptions options;
  options.device = "cpu";
  options.device_options.weights = weights;
  options.device_options.kv = kv;
  options.device_options.kernels = std::string(kernels);
  options.device_options.threads = 2;
  return Engine::from_folder(test::tales_folder(), options, Log());
}

std::vector<double> probabilities(std::span<const float> logits) {
  const auto most = static_cast<double>(*std::ranges::max_element(logits));
  std::vector<double> p(logits.size());
  double sum = 0;
  for (std::size_t i = 0; i < p.size(); ++i) sum += p[i] = std::exp(static_cast<double>(logits[i]) - most);
  for (double& value : p) value /= sum;
  return p;
}

struct Text {
  std::vector<TokenId> tokens;
  std::vector<std::vector<double>> next;  ///< probabilities after each token
};

/// Drawn from the model without any rounding; a new tale begins where one ends.
Text draw() {
  const Engine engine = load("auto", "f32", "");
  Session session = engine.new_session();
  std::mt19937 random(1);
  Text text;
  TokenId token = engine.tokenizer().encode("Once").front();
  for (std::size_t i = 0; i < kTokens; ++i) {
    text.tokens.push_back(token);
    text.next.push_back(probabilities(session.feed({&token, 1}, Want::last).values));
    const std::vector<double>& p = text.next.back();
    token = static_cast<TokenId>(std::discrete_distribution<std::size_t>(p.begin(), p.end())(random));
  }
  return text;
}

/// In nats, mean over all tokens, fed `step` at a time.
double divergence(const Engine& engine, const Text& text, std::size_t step) {
  Session session = engine.new_session();
  double sum = 0;
  for (std::size_t at = 0; at < kTokens; at += step) {
    const auto part = std::span(text.tokens).subspan(at, std::min(step, kTokens - at));
    const std::span<const float> logits = session.feed(part, Want::all).values;
    const std::size_t vocab = logits.size() / part.size();
    for (std::size_t i = 0; i < part.size(); ++i) {
      const std::vector<double>& p = text.next[at + i];
      const std::vector<double> q = probabilities(logits.subspan(i * vocab, vocab));
      for (std::size_t v = 0; v < vocab; ++v) sum += p[v] > 0 ? p[v] * std::log(p[v] / q[v]) : 0;
    }
  }
  return sum / kTokens;
}

class Rounding : public testing::TestWithParam<const KernelTable*> {
 protected:
  /// Of a prompt read at once, and decoding.
  static std::pair<double, double> divergences(const char* weights, const char* kv = "auto") {
    const Text text = draw();
    const Engine engine = load(weights, kv, GetParam()->name);
    return {divergence(engine, text, kTokens), divergence(engine, text, 16)};
  }
};

TEST_P(Rounding, ToBf16CostsNextToNothing) {
  const auto [prompt, decoding] = divergences("auto");
  EXPECT_LT(prompt, 1e-4);
  EXPECT_LT(decoding, 5e-7);
}

TEST_P(Rounding, ToQ8CostsLittle) {
  const auto [prompt, decoding] = divergences("q8");
  EXPECT_LT(prompt, 1e-3);
  EXPECT_LT(decoding, 4e-4);
}

TEST_P(Rounding, ToQ4StaysUsable) {
  const auto [prompt, decoding] = divergences("q4");
  EXPECT_LT(prompt, 0.15);
  EXPECT_LT(decoding, 0.15);
}

TEST_P(Rounding, OfTheCacheToQ8CostsLittle) {
  const auto [prompt, decoding] = divergences("auto", "q8");
  EXPECT_LT(prompt, 4e-4);
  EXPECT_LT(decoding, 4e-4);
}

INSTANTIATE_TEST_SUITE_P(Kernels, Rounding, testing::ValuesIn(available_kernels()),
                         [](const auto& test) { return std::string(test.param->name); });

}  // namespace
}  // namespace qgen
