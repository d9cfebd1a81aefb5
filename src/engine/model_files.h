#pragma once

#include <filesystem>

#include "qgen/base/log.h"
#include "qgen/engine/engine.h"
#include "qgen/tokenizer/tokenizer.h"
#include "qgen/weights/checkpoint.h"
#include "qgen/weights/model_config.h"

namespace qgen {

/// A model's files, read and checked one by one but not yet against each other.
struct ModelFiles {
  ModelConfig config;
  GenerationConfig generation_config;
  Tokenizer tokenizer;
  Checkpoint checkpoint;
};

/// Throws Error naming the file.
ModelFiles read_model_folder(const std::filesystem::path& folder, const Log& log);
ModelFiles read_gguf_files(const std::filesystem::path& path);
ModelFiles read_embedded_model(const EmbeddedModel& model);

}  // namespace qgen
