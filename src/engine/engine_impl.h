#pragma once

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/model_files.h"
#include "engine/packed_file.h"
#include "qgen/device/device.h"
#include "qgen/engine/engine.h"
#include "qgen/plan/plan.h"

namespace qgen {

struct Engine::Impl {
  /// Joins the files of a model with an architecture and a device. Throws Error where they do not fit.
  static std::unique_ptr<Impl> assemble(ModelFiles files, const EngineOptions& options, const Log& log);

  explicit Impl(ModelFiles model_files) : files(std::move(model_files)) {}

  ModelFiles files;
  std::optional<Tokenizer> tokenizer;  // there once the model is assembled
  Plan plan;
  std::optional<PackedFile> packed;  // outlives the executor, which may use what it maps
  std::unique_ptr<Executor> executor;
  std::int64_t context = 0;
  std::vector<TokenId> end_ids;
  std::vector<bool> allowed;
};

}  // namespace qgen
