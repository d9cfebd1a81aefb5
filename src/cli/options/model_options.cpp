#include "cli/options/model_options.h"

#include <array>
#include <limits>
#include <string_view>

#include "cli/options/option_set.h"
#include "cli/options/values.h"
#include "qgen/base/error.h"

namespace qgen::cli {
namespace {

constexpr std::int64_t kMaxHeads = 65'536;
constexpr std::int64_t kMaxThreads = 512;
constexpr std::int64_t kMaxLookup = 64;  // a bound that a step need not reach
constexpr std::int64_t kMaxContext = std::numeric_limits<std::int32_t>::max();

std::int64_t read_lookup(const Given& given) {
  return given.value == "off" ? 0 : read_integer(given, 0, kMaxLookup);
}

OptionSet::Setter path_setter(std::string& target) {
  return [&target](const Given& given) {
    if (given.value.empty()) throw Error(ErrorKind::usage, given.name + ": the path is empty");
    target = given.value;
  };
}

}  // namespace

void declare_model(OptionSet& set, ModelOptions& options) {
  set.value("-m,--model", "MODEL",
            "Model folder in Hugging Face format, a GGUF file, or the name (org/name, org/name@revision) of "
            "a model that Hugging Face's tools have downloaded (default: the small built-in model)",
            path_setter(options.path));
  set.value(
      "--checkpoint", "FILE",
      "A model saved by torch.save: the language model of the course CS336, or the Qwen3 of the book Build a "
      "Reasoning Model (From Scratch); takes --vocab and --merges, or --tokenizer",
      path_setter(options.checkpoint));
  set.value("--vocab", "FILE", "Vocabulary for --checkpoint: a pickled dict of ids and bytes, or vocab.json",
            path_setter(options.vocab));
  set.value("--merges", "FILE", "Its merges: a pickled list of pairs of bytes, or merges.txt",
            path_setter(options.merges));
  set.value("--tokenizer", "FILE", "Tokenizer for --checkpoint: a tokenizer.json",
            path_setter(options.tokenizer));
  set.value("--heads", "N", "Heads of attention, for a --checkpoint without a configuration",
            [&options](const Given& given) { options.heads = read_integer(given, 1, kMaxHeads); });
}

void check_model(const ModelOptions& options, Needed needed) {
  const auto fail = [](const std::string& reason) { throw Error(ErrorKind::usage, reason); };
  const bool companions = options.has_vocabulary() || !options.merges.empty() || options.heads != 0;
  if (!options.path.empty() && (companions || !options.checkpoint.empty())) {
    fail("-m names a whole model: give either -m, or --checkpoint with --vocab and --merges or --tokenizer");
  }
  if (needed == Needed::model && companions && options.checkpoint.empty()) {
    fail("--vocab, --merges, --tokenizer and --heads go with --checkpoint FILE");
  }
  if (!options.tokenizer.empty() && (!options.vocab.empty() || !options.merges.empty())) {
    fail("--tokenizer and --vocab with --merges exclude each other");
  }
  if (options.vocab.empty() != options.merges.empty()) {
    fail(std::string("--vocab and --merges go together: ") +
         (options.vocab.empty() ? "--vocab" : "--merges") + " FILE is missing");
  }
  if (!options.has_vocabulary() && (!options.checkpoint.empty() || options.heads != 0)) {
    fail("--checkpoint has no tokenizer in it: give --vocab FILE and --merges FILE, or --tokenizer FILE");
  }
}

void declare_threads(OptionSet& set, ModelOptions& options) {
  set.value("-t,--threads", "N", "Threads (default: physical cores within affinity and container quota)",
            [&options](const Given& given) { options.threads = read_integer(given, 1, kMaxThreads); });
}

void declare_processor(OptionSet& set, ModelOptions& options) {
  declare_threads(set, options);
  set.value("--kernels", "NAME", "Force a kernel table: scalar, avx2, avx512, ... (qgen doctor lists them)",
            [&options](const Given& given) {
              if (given.value.empty()) throw Error(ErrorKind::usage, given.name + ": the name is empty");
              options.kernels = given.value;
            });
}

void declare_execution(OptionSet& set, ModelOptions& options) {
  set.value("-c,--ctx-size", "N",
            "Context: most tokens of prompt and reply together (default: the "
            "model's maximum). Memory grows as the context fills; a smaller "
            "context is the way to bound it",
            [&options](const Given& given) { options.context = read_integer(given, 0, kMaxContext); });
  set.value("--kv", "TYPE",
            "Numbers in the cache: auto, f32, f16, bf16 or q8 (16 bits halve its memory, q8 halves it again)",
            [&options](const Given& given) {
              constexpr std::array<std::string_view, 5> kWords{"auto", "f32", "f16", "bf16", "q8"};
              options.kv = read_choice(given, kWords);
            });
  set.value("--weights", "TYPE",
            "How weights are held: auto (as the file has them), bf16, q8 or q4 (8.5 and 4.5 bits a weight)",
            [&options](const Given& given) {
              constexpr std::array<std::string_view, 4> kWords{"auto", "bf16", "q8", "q4"};
              options.weights = read_choice(given, kWords);
            });
  set.value("--packed", "FILE",
            "Keep the weights as they are held in FILE, as large as they are: written once, then mapped, so "
            "that the program starts at once; written anew for another model, --weights or processor",
            path_setter(options.packed));
  set.value("--device", "NAME", "auto, cpu, cuda or reference (slow, double precision)",
            [&options](const Given& given) { options.device = given.value; });
  set.value(
      "--lookup", "N",
      "Guess up to N tokens (default 8, at most 15 in a step) from what followed the same words before, "
      "and compute them along with the next one: the same text, sooner where it repeats itself; off (or "
      "0): never",
      [&options](const Given& given) { options.lookup = read_lookup(given); });
}

}  // namespace qgen::cli
