#include "cli/quantize/quantize.h"

#include <algorithm>
#include <filesystem>
#include <numeric>
#include <optional>
#include <string_view>
#include <system_error>

#include "cli/io/messages.h"
#include "cli/io/signals.h"
#include "cli/options/model_options.h"
#include "cli/options/option_set.h"
#include "cli/options/values.h"
#include "cli/quantize/convert.h"
#include "cli/quantize/recipe.h"
#include "cli/quantize/source.h"
#include "cli/run/hub_cache.h"
#include "qgen/base/error.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"
#include "qgen/device/cpu_info.h"

namespace qgen::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kIntroduction =
    R"(qgen quantize writes a model as one GGUF file with smaller weights.

Examples:
  qgen quantize -m Qwen3-0.6B --type q8_0 -o Qwen3-0.6B-Q8_0.gguf
  qgen quantize -m Qwen3-0.6B-BF16.gguf --type q4_k --head q8_0 -o Qwen3-0.6B-Q4_K.gguf

The model is a folder in Hugging Face format (qwen3, qwen3_moe, qwen2, llama, mistral) or a GGUF file, whose metadata
is passed on.)";

constexpr std::string_view kEnding =
    R"(What gets which type:
  matrices            --type, the embedding too
  output matrix       --head; this is the embedding itself where a model has no other
  norms, biases and the router of a mixture of experts
                      f32
Rows that are no multiple of a block (256 for q4_k and q6_k, 32 for q8_0 and q4_0) become q8_0, or f16 where they are
no multiple of 32 either. What has the type already is copied bit for bit; other quantised weights are made anew from
their values, which costs accuracy.

The file appears when it is complete; one of that name is replaced.)";

struct QuantizeOptions {
  ModelOptions model;
  Recipe recipe;
  bool has_type = false;
  fs::path out;
  bool verbose = false, quiet = false;
};

void check(const QuantizeOptions& options) {
  if (options.model.path.empty()) throw Error(ErrorKind::usage, "there is no model: give one with -m");
  if (!options.has_type) {
    throw Error(ErrorKind::usage, "there is no type: give one with --type (" + join(type_words()) + ")");
  }
  if (options.out.empty()) throw Error(ErrorKind::usage, "there is no output: name a file with -o");
  if (options.out == "-") {
    throw Error(ErrorKind::usage, "-o -: a GGUF file cannot be written to stdout; name a file");
  }
  if (options.verbose && options.quiet) {
    throw Error(ErrorKind::usage, "--verbose and --quiet exclude each other");
  }
}

/// Nothing where --help was asked for.
std::optional<QuantizeOptions> read_options(std::span<const std::string> arguments, std::string& help) {
  QuantizeOptions options;
  bool help_flag = false;
  OptionSet set{std::string(kIntroduction), std::string(kEnding)};
  set.group("Options");
  set.value("-m,--model", "PATH", "The model: a folder, a GGUF file, or a name in the Hugging Face cache",
            [&options](const Given& given) {
              if (given.value.empty()) throw Error(ErrorKind::usage, given.name + ": the path is empty");
              options.model.path = given.value;
            });
  set.value("--type", "TYPE", join(type_words()), [&options](const Given& given) {
    options.recipe.type = type_named(read_choice(given, type_words()));
    options.has_type = true;
  });
  set.value(
      "--head", "TYPE", "Type of the output matrix (default: q6_k beside q4_0 and q4_k, else as --type)",
      [&options](const Given& given) { options.recipe.head = type_named(read_choice(given, type_words())); });
  set.value("-o,--output", "FILE", "The GGUF file to write", [&options](const Given& given) {
    if (given.value.empty()) throw Error(ErrorKind::usage, given.name + ": the path is empty");
    options.out = given.value;
  });
  declare_threads(set, options.model);
  set.flag("--verbose", "Say on stderr what becomes of each tensor", options.verbose);
  set.flag("--quiet", "Nothing on stderr but errors", options.quiet);
  set.flag("-h,--help", "This text", help_flag);
  if (!set.read(arguments)) {
    help = set.help();
    return std::nullopt;
  }
  check(options);
  return options;
}

/// The input is mapped while it is read, and a model that replaced itself would be gone after a mistake.
void refuse_input(const fs::path& out, const QuantizeSource& source) {
  for (const fs::path& file : source.files) {
    std::error_code problem;
    if (fs::equivalent(out, file, problem)) {
      throw Error(ErrorKind::usage, "-o " + escape_control(out.string()) + ": this is a file of the input");
    }
  }
}

std::uint64_t bytes_of(const SourceTensor& tensor) {
  return std::accumulate(tensor.parts.begin(), tensor.parts.end(), std::uint64_t{0},
                         [](std::uint64_t sum, const StoredTensor& part) { return sum + part.data.size(); });
}

/// Writes tensor after tensor; tells how far it is.
class Run {
 public:
  Run(const QuantizeOptions& options, const QuantizeSource& source, Messages& messages)
      : options_(options),
        source_(source),
        messages_(messages),
        types_(types_of(source.tensors, options.recipe)),
        threads_(options.model.threads != 0 ? static_cast<int>(options.model.threads)
                                            : default_threads(read_cpu_info())) {
    for (const SourceTensor& tensor : source.tensors) total_ += bytes_of(tensor);
  }

  ExitCode write() {
    note_fallbacks();
    GgufHeader header = source_.header;
    header.add("general.file_type", file_type_of(options_.recipe.type));
    header.add("general.quantization_version", std::uint32_t{2});
    for (std::size_t i = 0; i < types_.size(); ++i) {
      header.add_tensor(source_.tensors[i].name, types_[i], source_.tensors[i].shape);
    }
    GgufWriter writer(options_.out, header);
    for (std::size_t i = 0; i < types_.size() && !interrupted(); ++i) {
      write_tensor(source_.tensors[i], types_[i], writer);
    }
    messages_.clear_progress();
    if (interrupted()) return ExitCode::interrupted;
    writer.finish();
    return ExitCode::finished;
  }

 private:
  void note_fallbacks() const {
    std::int64_t others = 0;
    for (std::size_t i = 0; i < types_.size(); ++i) {
      const bool chosen = types_[i] == DType::f32 || types_[i] == options_.recipe.type ||
                          source_.tensors[i].cols() % block_elements(options_.recipe.type) == 0;
      others += chosen ? 0 : 1;
    }
    if (others == 0) return;
    messages_.note(std::to_string(others) + " matrices have rows that are no multiple of " +
                   std::to_string(block_elements(options_.recipe.type)) + ", the block of " +
                   std::string(dtype_name(options_.recipe.type)) + "; they are stored as Q8_0 or F16");
  }

  void write_tensor(const SourceTensor& tensor, DType type, GgufWriter& writer) {
    messages_.detail(shorten(tensor.name) + " " + shape_text(tensor.shape) + ": " +
                     std::string(dtype_name(tensor.parts.front().dtype)) + " to " +
                     std::string(dtype_name(type)));
    messages_.progress("writing " + shorten(tensor.name, 40) + ", " +
                       std::to_string(total_ == 0 ? 100 : done_ * 100 / total_) + " %");
    convert_rows(tensor, type, threads_, [&](Bytes piece) {
      writer.write(piece);
      return !interrupted();
    });
    for (const StoredTensor& part : tensor.parts) source_.checkpoint.release(part.data);
    done_ += bytes_of(tensor);
  }

  const QuantizeOptions& options_;
  const QuantizeSource& source_;
  Messages& messages_;
  std::vector<DType> types_;
  int threads_;
  std::uint64_t total_ = 0, done_ = 0;
};

}  // namespace

ExitCode run_quantize(std::span<const std::string> arguments, Output& output) {
  std::string help;
  const std::optional<QuantizeOptions> options = read_options(arguments, help);
  if (!options) {
    output.write(help);
    return output.finish();
  }
  Messages messages(options->quiet     ? Verbosity::quiet
                    : options->verbose ? Verbosity::verbose
                                       : Verbosity::normal);
  const QuantizeSource source = read_quantize_source(find_model(options->model.path));
  refuse_input(options->out, source);
  // From here on there is a file to remove.
  handle_signals(OnInterrupt::finish_gracefully);
  return Run(*options, source, messages).write();
}

}  // namespace qgen::cli
