#pragma once

#include <filesystem>
#include <future>

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
  std::future<Tokenizer> tokenizer;  ///< may still be being read, by another thread
  Checkpoint checkpoint;
};

/// One that is there already.
std::future<Tokenizer> finished(Tokenizer tokenizer);

/// Throws Error naming the file. `aside`: reads the tokenizer in a thread of its own, which pays where there
/// is much else to do.
ModelFiles read_model_folder(const std::filesystem::path& folder, const Log& log, bool aside);
ModelFiles read_gguf_files(const std::filesystem::path& path);
ModelFiles read_embedded_model(const EmbeddedModel& model);

}  // namespace qgen
