// Candidate sets and probabilities as Hugging Face's logits processors give them
// (tools/reference/sampling_golden.py).

#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>

#include "qgen/base/json.h"
#include "sample/softmax.h"
#include "sample/steps.h"

namespace qgen {
namespace {

Json read_golden() {
  std::ifstream file(QGEN_TEST_DATA "/golden/sampling.json");
  std::stringstream text;
  text << file.rdbuf();
  return parse_json(text.str(), "sampling.json");
}

template <class T>
std::vector<T> numbers(const Json& array) {
  std::vector<T> out;
  for (const Json& item : *array.as_array()) out.push_back(static_cast<T>(item.as_double().value()));
  return out;
}

/// Sets the field whose row is called `key` (with underscores).
void set_option(SamplingOptions& options, const std::string& key, double value) {
  for (const SamplingOptionRow& row : sampling_option_rows()) {
    std::string name(row.name);
    std::replace(name.begin(), name.end(), '-', '_');
    if (name != key) continue;
    if (const auto* real = std::get_if<double SamplingOptions::*>(&row.field)) {
      options.*(*real) = value;
    } else {
      options.*std::get<std::int64_t SamplingOptions::*>(row.field) = static_cast<std::int64_t>(value);
    }
    return;
  }
  FAIL() << "no option row " << key;
}

SamplingOptions options_of(const Json& json) {
  SamplingOptions options;
  options.temperature = 1;
  options.top_p = 1;
  for (const auto& [key, value] : *json.find("options")->as_object()) {
    set_option(options, key, value.as_double().value());
  }
  if (const Json* order = json.find("order")) {
    for (const Json& step : *order->as_array()) options.order.push_back(*step.as_string());
  }
  return options;
}

struct Outcome {
  std::vector<TokenId> ids;
  std::vector<double> probabilities;
};

Outcome run_chain(const std::vector<float>& logits, const SamplingOptions& options,
                  const SampleContext& context) {
  std::vector<TokenId> all(logits.size());
  std::iota(all.begin(), all.end(), 0);
  Candidates candidates;
  std::ranges::copy(logits, candidates.begin(all).begin());
  candidates.find_top();
  for (const auto& step : make_chain(options)) step->apply(candidates, context);
  const std::span<const float> left = candidates.logits();
  EXPECT_EQ(candidates.top(), *std::max_element(left.begin(), left.end()));
  std::vector<float> weights(left.size());
  exp_weights(left, candidates.top(), weights);
  const double total = std::accumulate(weights.begin(), weights.end(), 0.0);
  Outcome out{{candidates.ids().begin(), candidates.ids().end()}, {}};
  for (const float weight : weights) out.probabilities.push_back(static_cast<double>(weight) / total);
  return out;
}

// Both sides compute the processed logits in the same float steps, but for the last bit of a product of
// penalties; exp errs by 2^-22, and logits here stay below 2^7, whose last bit is 2^-17.
constexpr double kTolerance = 0x1p-16;

TEST(SamplingGolden, SmallCasesHaveTheSameCandidatesAndProbabilities) {
  const Json golden = read_golden();
  for (const Json& c : *golden.find("small")->as_array()) {
    SCOPED_TRACE(*c.find("name")->as_string());
    const auto prompt = numbers<TokenId>(*c.find("prompt"));
    const auto reply = numbers<TokenId>(*c.find("reply"));
    const Outcome got = run_chain(numbers<float>(*c.find("logits")), options_of(c), {prompt, reply});
    ASSERT_EQ(got.ids, numbers<TokenId>(*c.find("ids")));
    const auto expected = numbers<double>(*c.find("probabilities"));
    for (std::size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(got.probabilities[i], expected[i], kTolerance * expected[i] + 1e-37) << "id " << got.ids[i];
    }
  }
}

/// The same as large_logits() of the script.
std::vector<float> large_logits() {
  std::vector<float> logits;
  for (std::uint64_t id = 0; id < 151936; ++id) {
    std::uint32_t total = 0;
    for (const std::uint64_t factor : {2654435761u, 2246822519u, 3266489917u, 668265263u}) {
      total += static_cast<std::uint32_t>(id * factor + 12345) >> 16;
    }
    logits.push_back((static_cast<float>(total) - 0x1p17f) / 0x1p13f);
  }
  return logits;
}

TEST(SamplingGolden, AWholeVocabularyHasTheSameCandidatesAndProbabilities) {
  const Json golden = read_golden();
  const std::vector<float> logits = large_logits();
  for (const Json& c : *golden.find("large")->as_array()) {
    const Outcome got = run_chain(logits, options_of(c), {});
    const auto& ids = got.ids;
    ASSERT_EQ(static_cast<std::int64_t>(ids.size()), c.find("count")->as_int());
    EXPECT_EQ(std::accumulate(ids.begin(), ids.end(), std::int64_t{0}), c.find("sum_of_ids")->as_int());
    const auto some = numbers<TokenId>(*c.find("some_ids"));
    const auto expected = numbers<double>(*c.find("some_probabilities"));
    for (std::size_t i = 0; i < some.size(); ++i) {
      const auto at = std::lower_bound(ids.begin(), ids.end(), some[i]) - ids.begin();
      EXPECT_NEAR(got.probabilities[static_cast<std::size_t>(at)], expected[i], kTolerance * expected[i]);
    }
  }
}

}  // namespace
}  // namespace qgen
