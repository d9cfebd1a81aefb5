#pragma once

#include <cstdint>
#include <filesystem>
#include <string_view>

#include "qgen/base/bytes.h"
#include "qgen/weights/checkpoint.h"
#include "qgen/weights/model_config.h"

namespace qgen {

/// What a checkpoint without a configuration does not tell. 0: not given.
struct TorchHints {
  std::int64_t heads = 0;
  std::int64_t context = 0;
};

/// A model under the names of the published checkpoints, as models/ knows them.
struct TorchModel {
  ModelConfig config;
  Checkpoint checkpoint;
};

/// Positions of a course model whose file does not say: what the course trains with.
inline constexpr std::int64_t kCourseContext = 256;

/// Reads a file of torch.save with the language model of the course CS336 (a dict with model_state_dict,
/// model or state_dict, and model_config or config; or a bare state dict) or the Qwen3 of the book "Build a
/// Reasoning Model (From Scratch)" (a bare state dict). Shapes come from the tensors; what the configuration
/// states must agree with them. Nothing in the file is ever executed: what is no plain data or tensor is
/// ignored where it is not needed and refused by name where it is. Throws Error{file} or {unsupported} naming
/// tensor or key, expected and found; Error{usage} where the number of heads is neither in the file nor in
/// `hints`, or does not fit.
TorchModel read_torch_model(const std::filesystem::path& file, const TorchHints& hints);
/// The same of a file already in memory, which must outlive the checkpoint.
TorchModel read_torch_model(Bytes data, std::string_view source, const TorchHints& hints);

}  // namespace qgen
