#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "generate/guess_budget.h"
#include "generate/ngram_lookup.h"
#include "generate/source.h"
#include "qgen/generate/generate.h"

namespace qgen {

/// Gives the logits after each token of a text. Where the text repeats itself it computes several tokens in
/// one step, the next one and guesses of what follows it, and answers from that as long as the guesses come
/// true. A step computes each of so few tokens as if it were alone, so the logits are the same either way.
class Stepper {
 public:
  /// `want`: best or last, as it is for every token. Both references must outlive this.
  Stepper(Source& source, Want want, const GenerateOptions& options);

  /// The logits after the prompt; see Session::feed.
  Logits prefill(std::span<const TokenId> prompt, const std::function<bool(std::int64_t done)>& progress);

  /// The logits after `id`, the token that comes after those before. Slides where the context is full. At
  /// most `room` more tokens will be chosen.
  Logits next(TokenId id, std::int64_t room);

  /// Leaves the source as if nothing had been guessed.
  void settle();

  /// Tokens up to the one whose logits were given last.
  [[nodiscard]] std::int64_t position() const;
  [[nodiscard]] const LookupCounts& counts() const noexcept { return counts_; }

 private:
  [[nodiscard]] std::int64_t ahead() const noexcept { return std::ssize(run_) - 1 - row_; }
  void remember(TokenId id);
  void guess(std::int64_t room);
  [[nodiscard]] bool run_ahead();
  bool give_up();
  [[nodiscard]] Logits current_row() const;

  Source& source_;
  Want want_;
  const GenerateOptions& options_;
  std::int64_t most_guesses_;
  NgramLookup lookup_;
  GuessBudget budget_;
  LookupCounts counts_;
  std::vector<TokenId> guess_;
  std::vector<TokenId> run_;       // the tokens of the last step, a known one and then guesses
  std::int64_t row_ = 0;           // which of them is the last known one
  std::span<const float> logits_;  // a row for each of them, where there are guesses
};

}  // namespace qgen
