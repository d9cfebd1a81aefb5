#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/base/bytes.h"
#include "qgen/engine/engine.h"
#include "qgen/sample/sampler.h"

namespace qgen {

/// Why a text ended; to_string gives the word used in reports.
enum class StopReason : std::uint8_t { end, stop, length, context, thinking, interrupted, error };
[[nodiscard]] std::string_view to_string(StopReason reason) noexcept;

/// What to do when the context fills during generation.
enum class ContextFull : std::uint8_t { stop, slide };

struct GenerateOptions {
  std::int64_t max_tokens = -1;   ///< -1: until the model ends or the context is full
  std::vector<std::string> stop;  ///< strings that end the text; they are not part of it
  bool ignore_end = false;        ///< go on after end ids (benchmarks)
  ContextFull context_full = ContextFull::stop;
  std::int64_t keep = 0;  ///< tokens at the start that sliding never drops
  int logprobs = -1;      ///< -1: none; else how many alternatives for each token
};

/// A token and its natural-log probability under the raw logits.
struct TokenLogprob {
  TokenId id = -1;
  double logprob = 0;
};

/// One generated token as it becomes known.
struct TokenEvent {
  TokenId id = -1;
  std::string_view
      text;  ///< what can be shown now: whole UTF-8 characters that no stop string can still take back
  TokenLogprob chosen;            ///< only with logprobs >= 0
  std::vector<TokenLogprob> top;  ///< best first
};

/// Receives events; returning false ends the text at once (the output is gone).
using TokenSink = std::function<bool(const TokenEvent&)>;

/// Seconds, by a monotonic clock.
struct Timings {
  double prefill_s = 0;      ///< the prompt, its last logits included
  double first_token_s = 0;  ///< from the call to the first token's choice
  double decode_s = 0;       ///< all steps after the first choice
  std::int64_t prefill_tokens = 0;
  std::int64_t decode_steps = 0;  ///< steps that decode_s covers
};

struct GenerateResult {
  StopReason stop = StopReason::end;
  std::vector<TokenId> tokens;       ///< the reply without the end token
  std::string text;                  ///< its bytes without the stop string
  std::vector<TokenEvent> logprobs;  ///< with logprobs >= 0; `text` of these is empty
  std::string problem;               ///< for StopReason::error: one clause that names the position
  Timings timings;
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
/// ends the text. Never prints, never throws for expected ends.
[[nodiscard]] GenerateResult generate(Session& session, const Engine& engine, Sampler& sampler,
                                      std::span<const TokenId> prompt, const GenerateOptions& options,
                                      const GenerateHooks& hooks);

}  // namespace qgen
