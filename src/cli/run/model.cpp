#include "cli/run/model.h"

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "cli/builtin/builtin.h"
#include "cli/io/format.h"
#include "cli/run/hub_cache.h"
#include "qgen/base/error.h"
#include "qgen/base/utf8.h"
#include "qgen/weights/gguf.h"

namespace qgen::cli {
namespace {

/// A file that is one by its name, which then must be one by its contents too, or by its first bytes.
bool names_gguf(const std::filesystem::path& path) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(path, problem)) return false;
  return path.extension() == ".gguf" || is_gguf(path);
}

/// Things that are no model folder get an answer that helps.
const std::filesystem::path& model_folder(const std::filesystem::path& path) {
  std::error_code problem;
  const auto status = std::filesystem::status(path, problem);
  const std::string shown = escape_control(path.string());
  if (problem) throw Error(ErrorKind::file, "cannot read model " + shown + ": " + problem.message());
  if (std::filesystem::is_directory(status)) return path;
  const std::string kind = path.extension().string();
  if (kind == ".safetensors") {
    throw Error(
        ErrorKind::unsupported,
        shown + ": expected a model folder; give the folder that holds this file, with its config.json");
  }
  if (kind == ".pt" || kind == ".pth") {
    throw Error(ErrorKind::unsupported,
                shown +
                    ": a checkpoint of torch.save is given as --checkpoint FILE, with "
                    "--vocab and --merges or --tokenizer");
  }
  if (kind == ".bin") {
    throw Error(ErrorKind::unsupported,
                shown + ": " + escape_control(kind.substr(1)) +
                    " files cannot be read yet; give a GGUF file or a folder in Hugging Face format");
  }
  throw Error(ErrorKind::file, shown + ": expected a model folder or a GGUF file, found another file");
}

CheckpointFiles checkpoint_files(const ModelOptions& options) {
  return {options.checkpoint, options.vocab, options.merges, options.tokenizer, options.heads};
}

Engine open_engine(const ModelOptions& options, const EngineOptions& engine_options, const Log& log) {
  if (options.is_builtin()) return Engine::from_embedded(builtin_model(), engine_options, log);
  if (options.path.empty()) return Engine::from_checkpoint(checkpoint_files(options), engine_options, log);
  const std::filesystem::path path = find_model(options.path);
  return names_gguf(path) ? Engine::from_gguf(path, engine_options, log)
                          : Engine::from_folder(model_folder(path), engine_options, log);
}

void describe(const Engine& engine, Messages& messages) {
  const Executor& executor = engine.executor();
  messages.detail("model " + engine.config().model_type + ", " + std::to_string(engine.parameters()) +
                  " parameters, vocabulary " + std::to_string(engine.vocab()) + ", context " +
                  std::to_string(engine.context()));
  const std::int64_t per_position = executor.cache_bytes_per_position();
  messages.detail("memory: weights " + human_bytes(executor.weight_bytes_per_token()) + ", cache " +
                  human_bytes(per_position) + " per token as it fills, " +
                  human_bytes(per_position * engine.context()) + " for the whole context (-c bounds it)");
}

}  // namespace

Mode mode_named(std::string_view word) noexcept {
  return static_cast<Mode>(std::ranges::find(kModeWords, word) - kModeWords.begin());
}

std::string kernels_of(Mode mode, const std::string& forced) {
  if (!forced.empty()) return forced;
  return mode == Mode::naive || mode == Mode::cache ? "scalar" : "";
}

std::string model_name(const ModelOptions& options) {
  if (options.is_builtin()) return std::string(builtin_model().name) + " (built in)";
  const std::string& path = options.path.empty() ? options.checkpoint : options.path;
  const std::filesystem::path folder = std::filesystem::path(path).lexically_normal();
  const std::filesystem::path name =
      folder.has_filename() ? folder.filename() : folder.parent_path().filename();
  return escape_control(name.empty() ? path : name.string());
}

Engine load_engine(const ModelOptions& options, Mode mode, Messages& messages) {
  EngineOptions engine_options;
  engine_options.device = options.device;
  engine_options.device_options.threads = static_cast<int>(options.threads);
  engine_options.device_options.kernels = kernels_of(mode, options.kernels);
  engine_options.device_options.weights = options.weights;
  engine_options.device_options.kv = options.kv;
  engine_options.context = options.context;
  // Modes that show what is slow have kernels of their own.
  if (kernels_of(mode, options.kernels) == options.kernels) engine_options.packed = options.packed;
  messages.progress("loading " + model_name(options) + " ...");
  Engine engine = open_engine(options, engine_options, messages.log());
  messages.clear_progress();
  describe(engine, messages);
  return engine;
}

Tokenizer load_tokenizer(const ModelOptions& options) {
  if (options.has_vocabulary()) return read_checkpoint_tokenizer(checkpoint_files(options));
  if (!options.path.empty()) {
    const std::filesystem::path path = find_model(options.path);
    return names_gguf(path) ? read_gguf_tokenizer(path) : Tokenizer::from_folder(model_folder(path));
  }
  const EmbeddedModel& model = builtin_model();
  return Tokenizer::from_json(as_text(model.tokenizer), as_text(model.tokenizer_config), model.name);
}

}  // namespace qgen::cli
