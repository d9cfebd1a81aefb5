#include "cli/run/run.h"

#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cli/io/messages.h"
#include "cli/io/signals.h"
#include "cli/run/model.h"
#include "cli/run/reply.h"
#include "qgen/base/error.h"
#include "qgen/base/stopwatch.h"
#include "qgen/sample/sampler.h"

namespace qgen::cli {
namespace {

constexpr std::string_view kUsage =
    "usage: qgen [-m FOLDER|FILE.gguf] [-p TEXT] [-f FILE] [options] [TEXT], or pipe a text in (qgen --help "
    "tells "
    "more)";

/// Ids of the prompt. A start token that the text already spells is not doubled.
std::vector<TokenId> encode_prompt(const Tokenizer& tokenizer, const std::string& text, bool parse_special) {
  std::vector<TokenId> ids = tokenizer.encode(text, {.parse_special = parse_special, .add_bos = true});
  const std::optional<TokenId> start = tokenizer.bos();
  if (start && ids.size() >= 2 && ids[0] == *start && ids[1] == *start) ids.erase(ids.begin());
  return ids;
}

/// Makes the prompt fit as --overflow says; false where it is refused.
bool fit_prompt(std::vector<TokenId>& prompt, const Engine& engine, const LengthOptions& length,
                const Messages& messages) {
  const auto count = static_cast<std::int64_t>(prompt.size());
  if (count < engine.context()) return true;
  // A context of one token has no room for a prompt and a reply, whatever is dropped.
  const bool hopeless = engine.context() < 2;
  if (length.overflow == Overflow::error || hopeless) {
    messages.error(
        "the prompt has " + std::to_string(count) + " tokens, the context holds " +
        std::to_string(engine.context()) + " and the reply needs one at least: " +
        (hopeless ? "choose a larger context (-c)" : "shorten it or choose with --overflow what to drop"));
    return false;
  }
  const FitLimits limits{engine.context(), length.max_tokens.value_or(-1), engine.tokenizer().bos()};
  messages.note(drop_overflow(prompt, length.overflow, limits));
  return true;
}

Mode mode_of(const RunOptions& options) {
  return options.modes.empty() ? Mode::all : options.modes.front();
}

GenerateOptions generate_options(const RunOptions& options) {
  GenerateOptions result;
  result.max_tokens = options.length.max_tokens.value_or(-1);
  result.stop = options.length.stop;
  result.ignore_end = options.length.ignore_end;
  result.context_full = options.length.context_full;
  result.keep = options.length.keep;
  result.logprobs = static_cast<int>(options.show.logprobs);
  if (!recomputes(mode_of(options))) result.lookup = options.model.lookup;
  return result;
}

void tell_about_model(const RunOptions& options, const Engine& engine, const Messages& messages) {
  if (options.model.is_builtin() && messages.is_terminal()) {
    messages.note("this is the built-in demonstration model; -m FOLDER or -m FILE.gguf takes a real one");
  }
  if (!engine.tokenizer().chat_template().empty() && !options.raw) {
    messages.detail("the model has a chat template; it is not applied, the prompt is continued as it is");
  }
}

/// -n 0 asks for nothing, and nothing is missing then.
bool fails_on_length(const RunOptions& options) {
  return options.length.fail_on_length && options.length.max_tokens != 0;
}

void tell_about_end(const RunOptions& options, const GenerateResult& result, const RunFacts& facts,
                    const Messages& messages) {
  if (result.stop == StopReason::error) messages.error("cannot go on: " + result.problem);
  if (result.stop == StopReason::length && fails_on_length(options)) {
    messages.note("the text is cut short after " + std::to_string(result.tokens.size()) + " tokens");
  }
  if (result.stop == StopReason::context) messages.note("the context is full, the text is cut short");
  if (options.show.stats || messages.is_verbose() || result.stop == StopReason::interrupted) {
    messages.note(stats_line(result, facts));
  }
}

/// Generates and writes the reply to `prompt`.
ExitCode reply(const RunOptions& options, const Engine& engine, std::span<const TokenId> prompt,
               RunFacts facts, Output& output, Messages& messages) {
  const SamplingOptions sampling = resolve_sampling(options.sampling, engine.generation_config());
  facts.seed = sampling.seed;
  facts.prompt_tokens = std::ssize(prompt);
  Sampler sampler(sampling);
  const auto writer =
      make_reply_writer(options.show.format(), output, engine.tokenizer(), options.show.logprobs >= 0);

  GenerateHooks hooks;
  hooks.cancel = &interrupted();
  hooks.progress = [&messages](std::int64_t done, std::int64_t total) {
    if (done == total) return;
    messages.progress("prompt " + std::to_string(done) + " of " + std::to_string(total) + " tokens");
  };
  hooks.sink = [&](const TokenEvent& event) {
    messages.clear_progress();
    return writer->token(event);
  };
  // Until here there is nothing to finish: an interrupt ends the wait for a prompt, or loading, at once.
  handle_signals(OnInterrupt::finish_gracefully);
  writer->begin(facts);
  const GenerateResult result = [&] {
    // Gone before anything is written: where the cache took the last memory, the end still has some.
    Session session = engine.new_session(recomputes(mode_of(options)));
    return generate(session, engine, sampler, prompt, generate_options(options), hooks);
  }();
  messages.clear_progress();
  writer->end(result, facts);
  const ExitCode written = output.finish();
  if (written != ExitCode::finished) return written;
  tell_about_end(options, result, facts, messages);
  return exit_code(result, fails_on_length(options));
}

}  // namespace

ExitCode run_prompt(const RunOptions& options, Output& output) {
  Messages messages(options.show.verbosity());
  const Prompt text = assemble_prompt(options.prompt, messages);
  if (!text.given) throw Error(ErrorKind::usage, "there is no prompt; " + std::string(kUsage));

  const Stopwatch watch;
  const Engine engine = load_engine(options.model, mode_of(options), messages);
  if (options.length.keep >= engine.context()) {
    throw Error(ErrorKind::usage, "--keep " + std::to_string(options.length.keep) +
                                      " leaves nothing to slide: the context holds " +
                                      std::to_string(engine.context()) + " tokens");
  }
  RunFacts facts;
  facts.load_s = watch.seconds();
  if (options.show.echo) facts.prompt = text.text;
  tell_about_model(options, engine, messages);

  std::vector<TokenId> prompt = encode_prompt(engine.tokenizer(), text.text, options.parse_special);
  if (prompt.empty()) {
    throw Error(ErrorKind::usage,
                "the prompt is empty and the model has no start token to begin with; " + std::string(kUsage));
  }
  if (!fit_prompt(prompt, engine, options.length, messages)) return ExitCode::cut_short;
  return reply(options, engine, prompt, std::move(facts), output, messages);
}

}  // namespace qgen::cli
