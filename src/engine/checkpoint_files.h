#pragma once

#include <cstdint>

#include "engine/model_files.h"
#include "qgen/engine/engine.h"

namespace qgen {

/// `context` is what was asked for, 0 for nothing: it holds where the checkpoint does not say. Throws Error
/// naming the file.
ModelFiles read_checkpoint_files(const CheckpointFiles& files, std::int64_t context);

}  // namespace qgen
