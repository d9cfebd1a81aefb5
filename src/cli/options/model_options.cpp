#include "cli/options/model_options.h"

#include <array>
#include <limits>
#include <string_view>

#include "cli/options/option_set.h"
#include "cli/options/values.h"
#include "qgen/base/error.h"

namespace qgen::cli {
namespace {

constexpr std::int64_t kMaxThreads = 512;
constexpr std::int64_t kMaxLookup = 64;  // a bound that a step need not reach
constexpr std::int64_t kMaxContext = std::numeric_limits<std::int32_t>::max();

std::int64_t read_lookup(const Given& given) {
  return given.value == "off" ? 0 : read_integer(given, 0, kMaxLookup);
}

}  // namespace

void declare_model(OptionSet& set, ModelOptions& options) {
  set.value("-m,--model", "FOLDER|FILE.gguf",
            "Model folder in Hugging Face format, or a GGUF file (default: the small built-in model)",
            [&options](const Given& given) {
              if (given.value.empty()) throw Error(ErrorKind::usage, given.name + ": the path is empty");
              options.path = given.value;
            });
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
