#include "cli/run/reply.h"

#include <sys/resource.h>

#include <nlohmann/json.hpp>

#include "cli/io/format.h"
#include "cli/io/json_text.h"
#include "qgen/base/utf8.h"

namespace qgen::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson token_object(const TokenLogprob& token, const Tokenizer& tokenizer) {
  const std::string_view bytes = tokenizer.bytes(token.id);
  OrderedJson values = OrderedJson::array();
  for (const char byte : bytes) values.push_back(static_cast<unsigned char>(byte));
  // -inf, the logarithm of a probability that underflowed, becomes null: JSON has no word for it.
  return {{"id", token.id},
          {"token", replace_invalid_utf8(bytes)},
          {"bytes", std::move(values)},
          {"logprob", token.logprob}};
}

OrderedJson logprobs_object(const GenerateResult& result, const Tokenizer& tokenizer) {
  OrderedJson content = OrderedJson::array();
  for (const TokenLogprobs& step : result.logprobs) {
    OrderedJson entry = token_object(step.chosen, tokenizer);
    OrderedJson& top = entry["top_logprobs"] = OrderedJson::array();
    for (const TokenLogprob& token : step.top) top.push_back(token_object(token, tokenizer));
    content.push_back(std::move(entry));
  }
  return {{"content", std::move(content)}};
}

/// Nothing where no token was chosen.
std::optional<double> first_token_seconds(const Timings& timings) {
  return timings.first_token_s > 0 ? std::optional(timings.first_token_s) : std::nullopt;
}

OrderedJson timings_object(const Timings& timings, double load_s) {
  return {{"load_s", load_s},
          {"prefill_s", timings.prefill_s},
          {"first_token_s", or_null<OrderedJson>(first_token_seconds(timings))},
          {"decode_s", timings.decode_s},
          {"decode_steps", timings.decode_steps},
          {"prefill_tok_s", or_null<OrderedJson>(rate(timings.prefill_tokens, timings.prefill_s))},
          {"decode_tok_s", or_null<OrderedJson>(rate(timings.decode_steps, timings.decode_s))}};
}

/// What both JSON formats say at the end.
void add_result(OrderedJson& object, const GenerateResult& result, const RunFacts& facts) {
  object["tokens"] = result.tokens;
  object["stop"] = to_string(result.stop);
  if (!result.problem.empty()) object["error"] = result.problem;
  object["seed"] = facts.seed;
  object["usage"] = {{"prompt_tokens", facts.prompt_tokens}, {"completion_tokens", result.tokens.size()}};
  object["timings"] = timings_object(result.timings, facts.load_s);
}

/// The bytes of the text and nothing else, each token as soon as it is there.
class TextWriter final : public ReplyWriter {
 public:
  explicit TextWriter(Output& output) : output_(output) {}
  bool begin(const RunFacts& facts) override { return output_.write(facts.prompt) && output_.flush(); }
  bool token(const TokenEvent& event) override { return output_.write(event.text) && output_.flush(); }
  bool end(const GenerateResult& /*result*/, const RunFacts& /*facts*/) override {
    output_.end_line_on_terminal();
    return output_.flush();
  }

 private:
  Output& output_;
};

class JsonWriter final : public ReplyWriter {
 public:
  JsonWriter(Output& output, const Tokenizer& tokenizer, bool logprobs, bool stream)
      : output_(output), tokenizer_(tokenizer), logprobs_(logprobs), stream_(stream) {}

  bool begin(const RunFacts& /*facts*/) override { return true; }

  bool token(const TokenEvent& event) override {
    if (!stream_) return true;
    OrderedJson object{{"event", "token"}, {"text", replace_invalid_utf8(event.text)}};
    object["id"] = event.id >= 0 ? OrderedJson(event.id) : OrderedJson();
    return line(object);
  }

  bool end(const GenerateResult& result, const RunFacts& facts) override {
    OrderedJson object = OrderedJson::object();
    if (stream_) object["event"] = "end";
    if (!facts.prompt.empty()) object["prompt"] = replace_invalid_utf8(facts.prompt);
    if (!stream_) object["text"] = replace_invalid_utf8(result.text);
    add_result(object, result, facts);
    if (logprobs_) object["logprobs"] = logprobs_object(result, tokenizer_);
    return line(object);
  }

 private:
  bool line(const OrderedJson& object) { return output_.write(json_text(object) + "\n") && output_.flush(); }

  Output& output_;
  const Tokenizer& tokenizer_;
  bool logprobs_;
  bool stream_;
};

std::string rate_text(std::int64_t count, double seconds) {
  const std::optional<double> value = rate(count, seconds);
  return value ? fixed(*value, 1) + " tok/s" : "n/a tok/s";
}

}  // namespace

std::unique_ptr<ReplyWriter> make_reply_writer(ReplyFormat format, Output& output, const Tokenizer& tokenizer,
                                               bool logprobs) {
  if (format == ReplyFormat::text) return std::make_unique<TextWriter>(output);
  return std::make_unique<JsonWriter>(output, tokenizer, logprobs, format == ReplyFormat::json_stream);
}

std::string stats_line(const GenerateResult& result, const RunFacts& facts) {
  const Timings& timings = result.timings;
  const std::optional<double> first_token = first_token_seconds(timings);
  return "load " + fixed(facts.load_s, 2) + " s; prompt " + std::to_string(timings.prefill_tokens) +
         " tokens, prefill " + fixed(timings.prefill_s, 3) + " s, " +
         rate_text(timings.prefill_tokens, timings.prefill_s) + "; first token " +
         (first_token ? fixed(*first_token, 3) + " s" : "n/a") + "; reply " +
         std::to_string(result.tokens.size()) + " tokens, decode " + std::to_string(timings.decode_steps) +
         " tokens in " + fixed(timings.decode_s, 3) + " s, " +
         rate_text(timings.decode_steps, timings.decode_s) + ", lookup " +
         std::to_string(result.lookup.proposed) + " proposed, " + std::to_string(result.lookup.accepted) +
         " accepted; stop " + std::string(to_string(result.stop)) + "; seed " + std::to_string(facts.seed) +
         "; peak memory " + human_bytes(peak_memory());
}

std::int64_t peak_memory() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

}  // namespace qgen::cli
