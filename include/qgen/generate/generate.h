#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/base/bytes.h"
#include "qgen/base/error.h"
#include "qgen/engine/engine.h"
#include "qgen/sample/sampler.h"

namespace qgen {

/// Why a text ended; to_string gives the word used in reports.
enum class StopReason : std::uint8_t { end, stop, length, context, thinking, interrupted, error };
[[nodiscard]] std::string_view to_string(StopReason reason) noexcept;

/// What to do when the context fills during generation.
enum class ContextFull : std::uint8_t { stop, slide };

/// Most tokens that are guessed in one step: a step computes up to 16 exactly as one by one.
inline constexpr std::int64_t kMostLookup = 15;

struct GenerateOptions {
  std::int64_t max_tokens = -1;  ///< -1: until the model ends or the context is full
  /// Strings that end the text (empty ones are ignored). They are matched on the bytes of the text, across
  /// token borders; the one that is complete first ends it, of several at the same byte the longest. One that
  /// spells a control token also matches that token itself.
  std::vector<std::string> stop;
  bool ignore_end = false;  ///< go on after end ids (benchmarks)
  ContextFull context_full = ContextFull::stop;
  std::int64_t keep = 0;  ///< tokens at the start that sliding never drops
  int logprobs = -1;      ///< -1: none; else how many alternatives for each token
  /// How many tokens at most (0..kMostLookup) are guessed from earlier parts of prompt and reply and computed
  /// along with a known one. The result is the same for any number, only sooner where the text repeats
  /// itself; where guesses fail, few are made. Of no use to a session that recomputes.
  std::int64_t lookup = 0;
};

/// A token and its natural-log probability: softmax over all rows of the raw logits, before any sampling
/// step.
struct TokenLogprob {
  TokenId id = -1;
  double logprob = 0;
};

/// What was known when a token was chosen. Alternatives are ids that stand for a token, the best first (of
/// equal ones the lowest id), the chosen one among them if it is that good.
struct TokenLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;
};

/// One generated token as it becomes known.
struct TokenEvent {
  TokenId id = -1;  ///< -1 in a last event that brings text which was held back
  /// What can be shown now: whole UTF-8 characters that no stop string can still take back. Often empty;
  /// valid during the call.
  std::string_view text;
};

/// Receives events; returning false ends the text at once (the output is gone).
using TokenSink = std::function<bool(const TokenEvent&)>;

/// Seconds, by a monotonic clock. All are finite and none is negative.
struct Timings {
  double prefill_s = 0;      ///< the prompt, its last logits included
  double first_token_s = 0;  ///< from the call to the first token's choice; 0 where there is none
  double decode_s = 0;       ///< from the first choice to the last
  std::int64_t prefill_tokens = 0;
  std::int64_t decode_steps = 0;  ///< choices that decode_s covers: all but the first
};

/// Guesses made, and those that came true: each saved a step.
struct LookupCounts {
  std::int64_t proposed = 0, accepted = 0;
};

struct GenerateResult {
  StopReason stop = StopReason::end;
  std::vector<TokenId> tokens;  ///< the reply without the end token, with those that make up the stop string
  std::string text;  ///< its bytes without control tokens and without the stop string and what follows it
  std::vector<TokenLogprobs> logprobs;       ///< with logprobs >= 0: one for each of `tokens`
  std::string problem;                       ///< for StopReason::error: one clause
  ErrorKind problem_kind = ErrorKind::file;  ///< and of what kind: file for logits that are not finite
  Timings timings;
  LookupCounts lookup;
};

/// Called during prefill with tokens done and their number.
using PrefillProgress = std::function<void(std::int64_t done, std::int64_t total)>;

/// What a run needs besides its options.
struct GenerateHooks {
  TokenSink sink;
  PrefillProgress progress;
  const std::atomic<bool>* cancel = nullptr;  ///< set from outside to interrupt
};

/// Feeds `prompt` (not empty, shorter than the context) to an empty session, then samples until something
/// ends the text: an end id, a stop string, the budget, the full context (prompt and reply have as many
/// tokens as it has positions), a logit that is not finite, memory that does not suffice or anything else
/// that keeps the model from going on, `cancel`, or a sink that returns false; the last two are
/// StopReason::interrupted. With ContextFull::slide the context never ends the text: each further
/// token is chosen as if only the first `keep` tokens and the last ones that fit had been fed. Restricts
/// `sampler` to the engine's allowed ids. Runs the model only for tokens that are asked for, and for guesses
/// (GenerateOptions::lookup). Never prints; what has been generated is never lost to an exception.
[[nodiscard]] GenerateResult generate(Session& session, const Engine& engine, Sampler& sampler,
                                      std::span<const TokenId> prompt, const GenerateOptions& options,
                                      const GenerateHooks& hooks);

}  // namespace qgen
