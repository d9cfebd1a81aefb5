#include "cli/run/run_options.h"

#include <algorithm>
#include <array>
#include <limits>

#include "cli/options/option_set.h"
#include "cli/options/values.h"
#include "qgen/base/error.h"

namespace qgen::cli {
namespace {

constexpr std::int64_t kMaxTokens = 1'000'000'000'000;
constexpr std::int64_t kMaxSize = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kMaxLogprobs = 100;
constexpr std::int64_t kMaxRepetitions = 1000;

constexpr std::string_view kIntroduction = R"(qgen writes text with Qwen3-style language models.

Examples:
  qgen --prompt "Once upon a time"               the built-in model, nothing to download
  qgen -m Qwen3-0.6B -p "Large language models"  a folder in Hugging Face format
  qgen --checkpoint ckpt.pt --vocab vocab.pkl --merges merges.pkl -p "Once upon a time"
  git diff | qgen -m Qwen3-0.6B -p "In short:"   stdin comes before the text
  qgen "Once upon a time" -n 50 --seed 7         50 tokens, the same each time
  qgen --bench -m Qwen3-0.6B                     how fast is it here?

Commands (qgen COMMAND --help tells more):
  qgen tokenize     text to token ids and back
  qgen quantize     a model as a GGUF file with smaller weights
  qgen doctor       what was found on this machine and what is chosen
  qgen bench        the same as qgen --bench

Only the generated text goes to stdout. Without a command: qgen [options] [TEXT])";

constexpr std::string_view kEnding =
    R"(In long options - and _ are equal; of a repeated option the last counts, -f and
--stop add up. "--" ends the options. A prompt is read from stdin if that is no
terminal; then come the files, then the text, joined by one newline, and every
byte counts, the last newline too.

Exit status: 0 finished; 2 usage; 3 cut short: context full, prompt too long, or
-n with --fail-on-length; 5 model or input missing, damaged or unsupported;
6 memory; 7 device; 8 output; 130 interrupted; 141 the reader closed the pipe.)";

void declare_length(OptionSet& set, LengthOptions& options) {
  set.value("-n,--max-tokens,--max-new-tokens,--n-predict", "N",
            "At most N tokens (default, or -1: no limit)",
            [&options](const Given& given) { options.max_tokens = read_integer(given, -1, kMaxTokens); });
  set.value("--stop", "TEXT", "End before this text (may be repeated)", [&options](const Given& given) {
    if (given.value.empty()) throw Error(ErrorKind::usage, given.name + ": the text is empty");
    options.stop.push_back(given.value);
  });
  set.flag("--ignore-eos", "Go on after end tokens", options.ignore_end);
  set.flag("--fail-on-length", "Exit with 3 where -n (not -n 0) ended the text", options.fail_on_length);
  set.value("--overflow", "HOW", "A prompt longer than the context: error, or drop its head, tail or middle",
            [&options](const Given& given) {
              const std::string word = read_choice(given, kOverflowWords);
              options.overflow =
                  static_cast<Overflow>(std::ranges::find(kOverflowWords, word) - kOverflowWords.begin());
            });
  set.value("--context-full", "HOW",
            "When the context is full: stop, or slide (drop the oldest token at each step)",
            [&options](const Given& given) {
              constexpr std::array<std::string_view, 2> kWords{"stop", "slide"};
              options.context_full =
                  read_choice(given, kWords) == "slide" ? ContextFull::slide : ContextFull::stop;
            });
  set.value("--keep", "N", "Tokens at the start that sliding never drops (default 0)",
            [&options](const Given& given) { options.keep = read_integer(given, 0, kMaxSize); });
}

void declare_show(OptionSet& set, ShowOptions& options) {
  set.flag("--json", "One JSON object instead of the text", options.json);
  set.flag("--json-stream", "One JSON object per line for each token, then one for the end",
           options.json_stream);
  set.value("--logprobs", "N", "With --json: probabilities of each token and of the N best instead",
            [&options](const Given& given) { options.logprobs = read_integer(given, 0, kMaxLogprobs); });
  set.flag("--echo", "Print the prompt first", options.echo);
  set.flag("--stats", "One line with times, rates, seed and memory on stderr at the end", options.stats);
  set.flag("--quiet,-q", "Nothing but errors on stderr", options.quiet);
  set.flag("--verbose,-v", "Tell what is loaded, chosen and needed", options.verbose);
}

void declare_prompt_reading(OptionSet& set, RunOptions& options) {
  declare_prompt(set, options.prompt);
  set.flag("--raw", "Take the prompt as it is, without a chat template (always so for now)", options.raw);
  set.flag("--parse-special", "Recognise control tokens such as <|im_end|> in the prompt",
           options.parse_special);
  set.value("--system", "TEXT", "Not for a model that is run raw", [](const Given& given) {
    throw Error(ErrorKind::usage, given.name + ": the model is run raw, which has no system message");
  });
  set.also("-sys", "--system");
}

void declare_modes(OptionSet& set, std::vector<Mode>& modes) {
  set.value("--mode,--bench-mode", "MODE",
            "How a step is computed: naive (plain kernels, no cache), cache "
            "(plain kernels), fused (best kernels, no cache), all (default); "
            "with --bench a list with commas, or all four if not given",
            [&modes](const Given& given) {
              modes.clear();
              for (const Given& part : split_list(given))
                modes.push_back(mode_named(read_choice(part, kModeWords)));
            });
}

void declare_bench(OptionSet& set, BenchOptions& options) {
  const auto value = [&](const std::string& names, const std::string& placeholder, const std::string& help,
                         OptionSet::Setter setter) {
    set.value(names, placeholder, help, [&options, setter = std::move(setter)](const Given& given) {
      if (options.first_option.empty()) options.first_option = given.name;
      setter(given);
    });
  };
  set.flag(
      "--bench",
      "Measure speed; -p and -n give sizes then, as in llama-bench; --lookup is off, so that every token "
      "costs a step",
      options.wanted);
  value("--bench-prompt,--n-prompt", "N", "Tokens of the prefill test (default 512)",
        [&options](const Given& given) { options.prompt_tokens = read_integer(given, 0, kMaxSize); });
  value("--bench-gen,--n-gen", "N", "Tokens of the decode test (default 128)",
        [&options](const Given& given) { options.new_tokens = read_integer(given, 0, kMaxSize); });
  value("-d,--bench-depth,--n-depth", "N,N", "Decode after so many tokens (default 0)",
        [&options](const Given& given) {
          options.depths.clear();
          for (const Given& part : split_list(given))
            options.depths.push_back(read_integer(part, 0, kMaxSize));
        });
  value("-r,--bench-repeat,--repetitions", "N", "Repetitions of each test (default 5)",
        [&options](const Given& given) { options.repetitions = read_integer(given, 1, kMaxRepetitions); });
  value("-o,--output", "FORMAT", "md, csv, json or jsonl", [&options](const Given& given) {
    constexpr std::array<std::string_view, 4> kWords{"md", "csv", "json", "jsonl"};
    options.format = read_choice(given, kWords);
  });
  value("--bench-compare", "OLD.json", "Tell what changed since an earlier -o json report, beyond the noise",
        [&options](const Given& given) { options.compare_with = given.value; });
  value("--plot", "FILE.svg", "Draw the rates as well",
        [&options](const Given& given) { options.plot = given.value; });
}

/// Options that contradict each other or mean nothing together.
void check_run(const RunOptions& options) {
  const ShowOptions& show = options.show;
  if (show.json && show.json_stream) {
    throw Error(ErrorKind::usage, "--json and --json-stream exclude each other");
  }
  if (show.logprobs >= 0 && show.format() == ReplyFormat::text) {
    throw Error(ErrorKind::usage, "--logprobs adds to --json or --json-stream: give one of them");
  }
  if (options.modes.size() > 1) throw Error(ErrorKind::usage, "--mode: one mode only, except with --bench");
}

/// With --bench, -p and -n are sizes.
void read_bench_sizes(RunOptions& options) {
  BenchOptions& bench = options.bench;
  if (options.prompt.text) {
    const std::string name = options.prompt.positional ? "--bench" : "-p with --bench";
    bench.prompt_tokens = read_integer({name, *options.prompt.text}, 0, kMaxSize);
  }
  if (!options.prompt.files.empty()) {
    throw Error(ErrorKind::usage, "--bench makes its own text: no -f with it");
  }
  if (options.show.format() != ReplyFormat::text || options.show.echo) {
    throw Error(ErrorKind::usage, "--bench has no reply to show: its formats are -o md, csv, json and jsonl");
  }
  if (options.length.max_tokens) {
    bench.new_tokens =
        read_integer({"-n with --bench", std::to_string(*options.length.max_tokens)}, 0, kMaxSize);
  }
}

}  // namespace

std::optional<RunOptions> read_run_options(std::span<const std::string> arguments, std::string& help) {
  RunOptions options;
  bool help_flag = false;
  OptionSet set{std::string(kIntroduction), std::string(kEnding)};
  set.group("Model");
  declare_model(set, options.model);
  set.group("Prompt");
  declare_prompt_reading(set, options);
  set.group("Length");
  declare_length(set, options.length);
  set.group("Sampling (default: the model's own values, else temperature 0.8, top-p 0.95)");
  declare_sampling(set, options.sampling);
  set.group("Output");
  declare_show(set, options.show);
  set.group("Memory and speed");
  declare_execution(set, options.model);
  declare_processor(set, options.model);
  declare_modes(set, options.modes);
  set.group("Benchmark");
  declare_bench(set, options.bench);
  set.group("Help");
  set.flag("-h,--help", "This text", help_flag);
  set.flag("--version", "Name and version", options.version);
  if (!set.read(arguments)) {
    help = set.help();
    return std::nullopt;
  }
  if (!options.version) check_model(options.model, Needed::model);
  if (options.bench.wanted) {
    read_bench_sizes(options);
  } else {
    if (!options.bench.first_option.empty()) {
      throw Error(ErrorKind::usage, options.bench.first_option + " belongs to --bench");
    }
    check_run(options);
  }
  return options;
}

}  // namespace qgen::cli
