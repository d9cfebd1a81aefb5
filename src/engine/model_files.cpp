#include "engine/model_files.h"

#include <string>
#include <system_error>
#include <utility>

#include "qgen/base/error.h"
#include "qgen/base/mapped_file.h"
#include "qgen/base/utf8.h"
#include "qgen/models/architecture.h"

namespace qgen {
namespace {

namespace fs = std::filesystem;

void require_folder(const fs::path& folder) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  const std::string name = escape_control(folder.string());
  if (status.type() == fs::file_type::not_found) {
    throw Error(ErrorKind::file, "cannot read model " + name + ": no such file or directory");
  }
  if (error) throw Error(ErrorKind::file, "cannot read model " + name + ": " + error.message());
  if (!fs::is_directory(status)) {
    throw Error(ErrorKind::unsupported,
                "cannot read model " + name +
                    ": it is a file; expected a folder with config.json, model.safetensors "
                    "and tokenizer.json");
  }
}

/// The type is looked at first: other keys of a model that is not supported may well have other forms.
ModelConfig read_config(std::string_view json, const std::string& source) {
  (void)find_architecture(parse_model_type(json, source), source);
  return parse_model_config(json, source);
}

GenerationConfig read_generation_config(const fs::path& path, const Log& log) {
  std::error_code error;
  if (!fs::exists(path, error) && !error) {
    log.verbose(escape_control(path.string()) + ": not there, so sampling defaults are qgen's own");
    return {};
  }
  const MappedFile file(path);
  return parse_generation_config(as_text(file.bytes()), escape_control(path.string()));
}

}  // namespace

std::future<Tokenizer> finished(Tokenizer tokenizer) {
  std::promise<Tokenizer> promise;
  promise.set_value(std::move(tokenizer));
  return promise.get_future();
}

ModelFiles read_model_folder(const fs::path& folder, const Log& log, bool aside) {
  require_folder(folder);
  const fs::path config_path = folder / "config.json";
  const MappedFile config_file(config_path);
  ModelConfig config = read_config(as_text(config_file.bytes()), escape_control(config_path.string()));
  GenerationConfig generation = read_generation_config(folder / "generation_config.json", log);
  // Where there is no thread for it, it is read when it is wanted.
  const auto when = aside ? std::launch::async | std::launch::deferred : std::launch::deferred;
  auto tokenizer = std::async(when, [folder] { return Tokenizer::from_folder(folder); });
  return {std::move(config), std::move(generation), std::move(tokenizer), Checkpoint::from_folder(folder)};
}

ModelFiles read_embedded_model(const EmbeddedModel& model) {
  const std::string source(model.name);
  return {read_config(as_text(model.config), source + "/config.json"),
          parse_generation_config(as_text(model.generation_config), source + "/generation_config.json"),
          finished(Tokenizer::from_json(as_text(model.tokenizer), as_text(model.tokenizer_config),
                                        source + "/tokenizer.json")),
          Checkpoint::from_bytes(model.weights, source + "/model.safetensors")};
}

}  // namespace qgen
