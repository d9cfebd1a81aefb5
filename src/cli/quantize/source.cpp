#include "cli/quantize/source.h"

#include <algorithm>
#include <system_error>

#include "qgen/base/error.h"
#include "qgen/base/utf8.h"
#include "qgen/models/architecture.h"
#include "qgen/weights/gguf.h"

namespace qgen::cli {
namespace {

namespace fs = std::filesystem;

/// Keys that speak of the file rather than of the model.
bool is_of_the_file(std::string_view key) {
  return key == "general.file_type" || key == "general.quantization_version" || key == "general.alignment" ||
         key.starts_with("split.");
}

QuantizeSource read_gguf_source(const fs::path& path) {
  Gguf gguf = Gguf::open(path);
  QuantizeSource source;
  // The order of keys has no meaning, but readers of bytes look for this one first.
  if (const GgufValue* architecture = gguf.metadata().find("general.architecture")) {
    source.header.add("general.architecture", *architecture);
  }
  for (const auto& [key, value] : gguf.metadata().entries()) {
    if (!is_of_the_file(key)) source.header.add(key, value);
  }
  for (const GgufTensor& tensor : gguf.tensors()) {
    source.tensors.push_back({std::string(tensor.name), tensor.tensor.shape, {tensor.tensor}, 0});
    const fs::path file(tensor.tensor.file);
    if (std::ranges::find(source.files, file) == source.files.end()) source.files.push_back(file);
  }
  source.files.push_back(path);
  // Nothing is written before the parts are known to fit together.
  const ModelConfig config = gguf_model_config(gguf);
  source.checkpoint = Checkpoint::from_gguf(std::move(gguf));
  static_cast<void>(find_architecture(config).plan(config, source.checkpoint));
  return source;
}

}  // namespace

std::int64_t SourceTensor::cols() const noexcept {
  if (shape.empty() || (shape.size() == 1 && rotated_heads != 0)) return 1;
  return shape.back();
}

std::int64_t SourceTensor::rows() const noexcept {
  if (shape.size() == 1 && rotated_heads != 0) return shape.front();
  std::int64_t product = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) product *= shape[i];
  return product;
}

QuantizeSource read_quantize_source(const fs::path& path) {
  std::error_code problem;
  const fs::file_status status = fs::status(path, problem);
  const std::string shown = escape_control(path.string());
  if (problem) throw Error(ErrorKind::file, "cannot read model " + shown + ": " + problem.message());
  if (fs::is_directory(status)) return read_folder_source(path);
  if (!is_gguf(path)) {
    throw Error(ErrorKind::file, shown + ": expected a model folder or a GGUF file, found another file");
  }
  return read_gguf_source(path);
}

}  // namespace qgen::cli
