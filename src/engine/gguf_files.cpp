#include <string>
#include <utility>

#include "engine/engine_impl.h"
#include "engine/gguf_vocabulary.h"
#include "engine/model_files.h"
#include "qgen/models/architecture.h"
#include "qgen/weights/gguf.h"

namespace qgen {
namespace {

Tokenizer make_tokenizer(const GgufMetadata& metadata) {
  return Tokenizer::from_parts(read_gguf_vocabulary(metadata), metadata.source());
}

}  // namespace

ModelFiles read_gguf_files(const std::filesystem::path& path) {
  Gguf gguf = Gguf::open(path);
  ModelConfig config = gguf_model_config(gguf);
  (void)find_architecture(config);
  GenerationConfig generation = gguf_generation_config(gguf.metadata());
  Tokenizer tokenizer = make_tokenizer(gguf.metadata());
  return {std::move(config), std::move(generation), finished(std::move(tokenizer)),
          Checkpoint::from_gguf(std::move(gguf))};
}

Tokenizer read_gguf_tokenizer(const std::filesystem::path& path) {
  return make_tokenizer(Gguf::open_metadata(path).metadata());
}

Engine Engine::from_gguf(const std::filesystem::path& path, const EngineOptions& options, const Log& log) {
  return Engine(Impl::assemble(read_gguf_files(path), options, log));
}

}  // namespace qgen
