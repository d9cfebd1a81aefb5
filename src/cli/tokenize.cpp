#include "cli/tokenize.h"

#include <array>
#include <charconv>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/io/json_text.h"
#include "cli/io/lines.h"
#include "cli/io/messages.h"
#include "cli/options/model_options.h"
#include "cli/options/option_set.h"
#include "cli/run/model.h"
#include "cli/run/prompt.h"
#include "qgen/base/error.h"
#include "qgen/base/json.h"
#include "qgen/base/utf8.h"
#include "qgen/tokenizer/tokenizer.h"

namespace qgen::cli {
namespace {

constexpr std::string_view kIntroduction =
    R"(qgen tokenize shows the tokens of a text, one line "id<TAB>piece" each.

Examples:
  qgen tokenize -m Qwen3-0.6B "Hello world"
  qgen tokenize -m Qwen3-0.6B --count < book.txt
  qgen tokenize -m Qwen3-0.6B --ids "Hello" | qgen tokenize -m Qwen3-0.6B --decode
  qgen tokenize -m Qwen3-0.6B --jsonl data.jsonl --count
  qgen tokenize --vocab vocab.pkl --merges merges.pkl --ids < text

The text comes from stdin, -f and -p as for qgen itself.)";

struct TokenizeOptions {
  ModelOptions model;
  PromptOptions prompt;
  EncodeOptions encode;
  bool ids = false, count = false, decode = false, no_bos = false;
  std::string jsonl;  // empty: plain text
};

void check(const TokenizeOptions& options) {
  check_model(options.model, Needed::tokenizer);
  const bool jsonl = !options.jsonl.empty();
  if (int{options.ids} + int{options.count} + int{options.decode} > 1) {
    throw Error(ErrorKind::usage, "--ids, --count and --decode exclude each other");
  }
  if (jsonl && (options.decode || options.ids || options.prompt.text || !options.prompt.files.empty())) {
    throw Error(ErrorKind::usage, "--jsonl goes with --count, --no-bos and --parse-special only");
  }
}

/// Nothing where --help was asked for.
std::optional<TokenizeOptions> read_options(std::span<const std::string> arguments, std::string& help) {
  TokenizeOptions options;
  bool help_flag = false;
  OptionSet set{std::string(kIntroduction), {}};
  set.group("Options");
  declare_model(set, options.model);
  declare_prompt(set, options.prompt);
  set.flag("--ids", "All ids on one line", options.ids);
  set.flag("--count", "Only the number of tokens", options.count);
  set.flag("--decode", "The other way: ids, separated by blanks or commas, to bytes", options.decode);
  set.flag("--parse-special", "Recognise control tokens such as <|im_end|>", options.encode.parse_special);
  set.flag("--no-bos", "Leave out the start token that some models have", options.no_bos);
  set.value("--jsonl", "FILE",
            "A JSON string, or an object with \"text\", on each line: one array of ids "
            "(with --count a number) for each; - is stdin",
            [&options](const Given& given) {
              if (given.value.empty()) throw Error(ErrorKind::usage, given.name + ": the path is empty");
              options.jsonl = given.value;
            });
  set.flag("-h,--help", "This text", help_flag);
  if (!set.read(arguments)) {
    help = set.help();
    return std::nullopt;
  }
  options.encode.add_bos = !options.no_bos;
  check(options);
  return options;
}

void append_number(std::string& line, std::int64_t number) {
  std::array<char, 24> text{};
  const auto [end, problem] = std::to_chars(text.data(), text.data() + text.size(), number);
  line.append(text.data(), problem == std::errc() ? end : text.data());
}

std::string join_ids(std::span<const TokenId> ids, char separator) {
  std::string line;
  line.reserve(ids.size() * 7);
  for (const TokenId id : ids) {
    if (!line.empty()) line += separator;
    append_number(line, id);
  }
  return line;
}

void print_pieces(std::span<const TokenId> ids, const Tokenizer& tokenizer, Output& output) {
  std::string line;
  for (const TokenId id : ids) {
    line.clear();
    append_number(line, id);
    line += '\t';
    line += json_string(tokenizer.bytes(id));
    line += '\n';
    if (!output.write(line)) return;
  }
}

void print_decoded(std::string_view text, const Tokenizer& tokenizer, Output& output) {
  constexpr std::string_view kSeparators = " \t\r\n,";
  std::size_t at = 0;
  while ((at = text.find_first_not_of(kSeparators, at)) != std::string_view::npos) {
    const std::size_t end = std::min(text.find_first_of(kSeparators, at), text.size());
    const std::string word(text.substr(at, end - at));
    const std::int64_t id = read_integer({"token id", word}, 0, tokenizer.size() - 1);
    if (!tokenizer.is_known(static_cast<TokenId>(id))) {
      throw Error(ErrorKind::usage, "token id " + word + " stands for nothing in this vocabulary");
    }
    if (!output.write(tokenizer.bytes(static_cast<TokenId>(id)))) return;
    at = end;
  }
}

/// The text of one line of --jsonl. Throws Error{file} for anything else.
std::string line_text(std::string_view line, const std::string& source) {
  const Json json = parse_json(line, source);
  if (const std::string* text = json.as_string()) return *text;
  const Json* member = json.find("text");
  if (member != nullptr && member->as_string() != nullptr) return *member->as_string();
  throw Error(ErrorKind::file,
              source + ": expected a string or an object with a string \"text\", found " +
                  std::string(member == nullptr ? json.type_name() : "another type of \"text\""));
}

/// Answers each line in order. A bad line, and so an empty one, gets an error object: lines keep their
/// places.
ExitCode tokenize_lines(const TokenizeOptions& options, const Tokenizer& tokenizer, Output& output) {
  LineReader lines(options.jsonl);
  bool failed = false;
  while (const std::optional<std::string_view> line = lines.next()) {
    std::string answer;
    try {
      const std::string text = line_text(*line, lines.place());
      const std::vector<TokenId> ids = tokenizer.encode(text, options.encode);
      answer = options.count ? std::to_string(ids.size()) : "[" + join_ids(ids, ',') + "]";
    } catch (const Error& problem) {
      failed = true;
      answer = "{\"error\":" + json_string(problem.what()) + "}";
    }
    if (!output.write(answer + "\n")) break;
  }
  const ExitCode written = output.finish();
  if (written != ExitCode::finished) return written;
  return failed ? ExitCode::some_failed : ExitCode::finished;
}

void print_text_tokens(const TokenizeOptions& options, const std::string& text, const Tokenizer& tokenizer,
                       Output& output) {
  const std::vector<TokenId> ids = tokenizer.encode(text, options.encode);
  if (options.count) {
    output.write(std::to_string(ids.size()) + "\n");
  } else if (options.ids) {
    output.write(join_ids(ids, ' ') + "\n");
  } else {
    print_pieces(ids, tokenizer, output);
  }
}

}  // namespace

ExitCode run_tokenize(std::span<const std::string> arguments, Output& output) {
  std::string help;
  const std::optional<TokenizeOptions> options = read_options(arguments, help);
  if (!options) {
    output.write(help);
    return output.finish();
  }
  if (!options->jsonl.empty()) return tokenize_lines(*options, load_tokenizer(options->model), output);

  Messages messages(Verbosity::normal);
  const bool named = options->prompt.text || !options->prompt.files.empty();
  if (!named && ::isatty(STDIN_FILENO) == 1) {
    throw Error(ErrorKind::usage,
                "there is no text: give one, -f FILE, or pipe one in (qgen tokenize --help)");
  }
  const Tokenizer tokenizer = load_tokenizer(options->model);
  const Prompt text = assemble_prompt(options->prompt, messages);
  if (options->decode) {
    print_decoded(text.text, tokenizer, output);
    output.end_line_on_terminal();
  } else {
    print_text_tokens(*options, text.text, tokenizer, output);
  }
  return output.finish();
}

}  // namespace qgen::cli
