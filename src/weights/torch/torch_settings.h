#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "weights/torch/pickle.h"
#include "weights/torch/torch_dict.h"

namespace qgen {

/// A number of the configuration and the key that states it.
struct Setting {
  std::string key;  ///< empty: not stated
  std::int64_t value = 0;
};

/// The configuration that a training script left in its checkpoint.
struct TorchSettings {
  Setting vocab, context, width, layers, heads, kv_heads, feed_forward;
  std::optional<double> theta, eps;
  bool tied = false;
  std::string unusable;  ///< why there is none though the file has something under that name; safe to print
};

/// Reads model_config, or else config, of a checkpoint with these members: a dict, or one with a dict "model"
/// or "model_config" in it. Keys have the many names that people give them; others are ignored. Throws
/// Error{file} naming the key for a value of another type or out of any sane range, and for two names of one
/// thing that contradict each other.
TorchSettings read_torch_settings(const Pickle& pickle, const std::vector<PickleMember>& checkpoint,
                                  const std::string& source);

}  // namespace qgen
