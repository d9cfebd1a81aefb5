#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "qgen/base/bytes.h"

namespace qgen {

/// Everything that decides which token follows, in published settings' terms. A value named "off" leaves
/// logits alone.
struct SamplingOptions {
  double temperature = 0.8;  ///< 0: greedy, ties to the lowest id
  std::int64_t top_k = 0;    ///< 0 (or -1): off
  double top_p = 0.95;       ///< 1: off
  double min_p = 0;          ///< 0: off
  double repetition_penalty =
      1;                         ///< 1: off; once per distinct token of prompt and reply (Keskar et al. 2019)
  double presence_penalty = 0;   ///< 0: off; reply only
  double frequency_penalty = 0;  ///< 0: off; reply only, per occurrence
  std::int64_t penalty_window = -1;  ///< how many last tokens the penalties look at; -1: all
  std::uint64_t seed = 0;
  /// Names of the steps in the order in which they run ('-' and '_' are equal); a step that is not named does
  /// not run. Empty: penalties, temperature, top_k, top_p, min_p.
  std::vector<std::string> order;
};

/// One number that a step can be set by. The command line builds its options from these rows.
struct SamplingOptionRow {
  std::string_view name;                  ///< long option without dashes, words joined by '-'
  std::vector<std::string_view> aliases;  ///< further long names
  std::string_view key;                   ///< key in generation_config.json, empty where there is none
  std::string_view help;
  double low = 0, high = 0;  ///< both allowed
  std::variant<double SamplingOptions::*, std::int64_t SamplingOptions::*> field;
};

/// The rows of every step, in the default order of the steps.
std::span<const SamplingOptionRow> sampling_option_rows();
/// The names that SamplingOptions::order may hold, in the default order.
std::span<const std::string_view> sampler_step_names();

/// What a sampler has to know of the text so far.
struct SampleContext {
  std::span<const TokenId> prompt;
  std::span<const TokenId> reply;
};

/// The choice, or why there is none.
struct SampleResult {
  TokenId id = -1;  ///< -1: no choice
  /// One clause naming the lowest offending id, for example "logit 17 is nan" or "logit 3 is inf"; "no logit
  /// is above -inf" where nothing could be chosen. Empty if id >= 0.
  std::string problem;
};

/// A chain of steps and a counter-based generator (Philox 4x32-10, Salmon et al. 2011): the choice at reply
/// position n depends on the seed, n and the logits alone.
class Sampler {
 public:
  /// Throws Error{usage} naming option, value and range for a value that its row does not accept, and naming
  /// the step for an unknown or repeated one in `order`.
  explicit Sampler(const SamplingOptions& options);
  ~Sampler();
  Sampler(Sampler&&) noexcept;
  Sampler& operator=(Sampler&&) noexcept;

  /// Chooses the token for position reply.size(). `logits` has one entry per vocabulary row. Any NaN or +inf
  /// among the allowed ones, or none above -inf, is no choice. Ids in `context` beyond the vocabulary count
  /// for nothing.
  [[nodiscard]] SampleResult choose(std::span<const float> logits, const SampleContext& context);

  /// Restricts the choice to ids for which `mask[id]` is true; ids beyond the mask are not allowed. Rows of
  /// the output matrix that stand for no token (padding) are kept out this way.
  void set_allowed(std::vector<bool> mask);

  /// True where the choice is the arg-max of the raw logits, so that a device may compute it alone.
  [[nodiscard]] bool is_plain_greedy() const noexcept;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qgen
