#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace qgen {

/// How a text is cut into the pieces that are merged on their own. Each rule covers every text without gaps.
enum class SplitRule {
  gpt2,            ///< the rule of GPT-2, which byte-level pre-tokenizers use by themselves
  qwen2,           ///< Qwen2 and Qwen3: digits one by one
  llama3,          ///< Llama-3 and cl100k: up to three digits together
  tekken,          ///< Mistral's: words end where upper case follows lower case, digits one by one
  o200k,           ///< as Tekken, with up to three digits and contractions kept with their word
  each_digit,      ///< every numeric character apart
  runs_of_digits,  ///< runs of numeric characters apart
};

/// The rule that a published pattern stands for, or nothing for an unknown one.
std::optional<SplitRule> split_rule_of_pattern(std::string_view pattern) noexcept;

/// Where the piece of `text` that starts at `begin` (below text.size()) ends. Calls that walk through a text
/// take linear time together.
std::size_t piece_end(SplitRule rule, std::string_view text, std::size_t begin) noexcept;

/// Yields the pieces that several rules make of one text, each rule cutting the pieces of the rule before it.
class PieceReader {
 public:
  PieceReader(const std::vector<SplitRule>& rules, std::string_view text)
      : rules_(rules), text_(text), ends_(rules.size(), 0) {}

  [[nodiscard]] bool done() const noexcept { return position_ == text_.size(); }
  /// The next piece; only while not done().
  std::string_view next() noexcept;

 private:
  const std::vector<SplitRule>& rules_;
  std::string_view text_;
  std::size_t position_ = 0;
  std::vector<std::size_t> ends_;  // of the current piece of each rule
};

/// The pre-tokenizer of a byte-level tokenizer.
struct SplitPlan {
  std::vector<SplitRule> rules;   ///< applied to each text between added tokens
  bool add_prefix_space = false;  ///< then each piece gets a space in front unless it begins with one
  bool split_again = false;       ///< then each piece is cut by the rule of GPT-2
};

}  // namespace qgen
