#include "generate/loop.h"

#include <limits>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "generate/logprobs.h"
#include "generate/reply_text.h"
#include "generate/stepper.h"
#include "qgen/base/error.h"
#include "qgen/base/stopwatch.h"

namespace qgen {
namespace {

class Loop {
 public:
  Loop(Source& source, Sampler& sampler, std::span<const TokenId> prompt, const GenerateOptions& options,
       const GenerateHooks& hooks)
      : source_(source),
        sampler_(sampler),
        prompt_(prompt),
        options_(options),
        hooks_(hooks),
        want_(sampler.is_plain_greedy() && options.logprobs < 0 ? Want::best : Want::last),
        stepper_(source, want_, options),
        text_(source, options.stop) {}

  GenerateResult run() {
    result_.stop = run_until_end();
    stepper_.settle();
    result_.lookup = stepper_.counts();
    show(-1, text_.flush());
    return std::move(result_);
  }

 private:
  /// A model that cannot go on ends the text as other reasons do, so that what there is of it is not lost.
  StopReason run_until_end() {
    try {
      return feed_and_choose();
    } catch (const Error& problem) {
      return fail(problem.what(), problem.kind());
    } catch (const std::bad_alloc&) {
      return fail("not enough memory", ErrorKind::memory);
    }
  }

  StopReason feed_and_choose() {
    sampler_.set_allowed(source_.allowed());
    std::optional<StopReason> end = prefill();
    if (!end) end = limit();
    while (!end) {
      const TokenId id = choose();
      end = id < 0 ? StopReason::error : accept(id);
      if (!end) end = step(id);
    }
    return *end;
  }

  StopReason fail(std::string problem, ErrorKind kind) {
    result_.problem = std::move(problem);
    result_.problem_kind = kind;
    return StopReason::error;
  }

  /// A reason to end, or nothing; the same below.
  std::optional<StopReason> prefill() {
    const auto total = std::ssize(prompt_);
    const auto progress = [&](std::int64_t done) {
      if (hooks_.progress) hooks_.progress(done, total);
      result_.timings.prefill_tokens = done;
      return !cancelled();
    };
    logits_ = stepper_.prefill(prompt_, progress);
    result_.timings.prefill_s = watch_.seconds();
    if (cancelled()) return StopReason::interrupted;
    result_.timings.prefill_tokens = total;
    return std::nullopt;
  }

  /// The next token, or -1 and the problem.
  TokenId choose() {
    SampleResult choice =
        want_ == Want::best ? best_choice() : sampler_.choose(logits_.values, {prompt_, result_.tokens});
    if (choice.id < 0) {
      fail(choice.problem + " at position " + std::to_string(stepper_.position() - 1), ErrorKind::file);
      return -1;
    }
    take_time();
    return choice.id;
  }

  [[nodiscard]] SampleResult best_choice() const {
    if (logits_.not_finite >= 0)
      return {-1, "logit " + std::to_string(logits_.not_finite) + " is not finite"};
    if (logits_.best < 0) return {-1, "no logit is above -inf"};
    return {logits_.best, ""};
  }

  void take_time() {
    if (!since_first_choice_) {
      since_first_choice_.emplace();
      result_.timings.first_token_s = watch_.seconds();
    } else {
      result_.timings.decode_s = since_first_choice_->seconds();
      ++result_.timings.decode_steps;
    }
  }

  std::optional<StopReason> accept(TokenId id) {
    if (source_.is_end(id) && !options_.ignore_end) return StopReason::end;
    result_.tokens.push_back(id);
    if (options_.logprobs >= 0) {
      result_.logprobs.push_back(read_logprobs(logits_.values, source_.allowed(), id, options_.logprobs));
    }
    bool stopped = false;
    if (!show(id, text_.push(id, stopped))) return StopReason::interrupted;
    return stopped ? StopReason::stop : limit();
  }

  /// Passes on a token (or -1) and its text; false where the output is gone.
  bool show(TokenId id, const std::string& text) {
    result_.text += text;
    const bool news = id >= 0 || !text.empty();
    if (hooks_.sink && news && !output_gone_) output_gone_ = !hooks_.sink({id, text});
    return !output_gone_;
  }

  [[nodiscard]] std::optional<StopReason> limit() const {
    const auto reply = std::ssize(result_.tokens);
    if (options_.max_tokens >= 0 && reply >= options_.max_tokens) return StopReason::length;
    const bool full = std::ssize(prompt_) + reply >= source_.context();
    if (full && options_.context_full == ContextFull::stop) return StopReason::context;
    return std::nullopt;
  }

  /// Runs the model on the token that was accepted.
  std::optional<StopReason> step(TokenId id) {
    if (cancelled()) return StopReason::interrupted;
    const bool unlimited = options_.max_tokens < 0;
    const std::int64_t room = unlimited ? std::numeric_limits<std::int64_t>::max()
                                        : options_.max_tokens - std::ssize(result_.tokens);
    logits_ = stepper_.next(id, room);
    return std::nullopt;
  }

  [[nodiscard]] bool cancelled() const {
    return hooks_.cancel != nullptr && hooks_.cancel->load(std::memory_order_relaxed);
  }

  Source& source_;
  Sampler& sampler_;
  std::span<const TokenId> prompt_;
  const GenerateOptions& options_;
  const GenerateHooks& hooks_;
  Want want_;
  Stepper stepper_;
  ReplyText text_;
  Logits logits_;
  GenerateResult result_;
  bool output_gone_ = false;
  Stopwatch watch_;
  std::optional<Stopwatch> since_first_choice_;
};

}  // namespace

GenerateResult run_loop(Source& source, Sampler& sampler, std::span<const TokenId> prompt,
                        const GenerateOptions& options, const GenerateHooks& hooks) {
  return Loop(source, sampler, prompt, options, hooks).run();
}

}  // namespace qgen
