#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace qgen {

/// A tensor's name there and its name here, that of the published checkpoints.
using NamePair = std::pair<std::string_view, std::string_view>;

/// How the tensors of one kind of checkpoint are named. Every tensor listed must be there, except the head.
struct TorchNames {
  std::string_view title;   ///< for messages
  std::string_view blocks;  ///< what layers' names begin with: "layers."
  std::span<const NamePair> common, in_layer;
  std::string_view embedding, head;
  std::string_view query, key, gate;  ///< in a layer: their shapes are those of the model
  std::string_view query_norm;        ///< in a layer; empty: there is none
};

/// The language model of the course CS336 and the Qwen3 of the book "Build a Reasoning Model (From Scratch)".
extern const TorchNames kCourseNames, kBookNames;

/// A tensor's name here; nothing for one that is not listed. `layer` is the layer that it belongs to, or -1.
std::optional<std::string> translate(const TorchNames& names, std::string_view name, std::int64_t& layer);

/// `name` without what wrappers of training (torch.compile, data parallelism) put into it: every component
/// "_orig_mod" or "module".
std::string without_wrappers(std::string_view name);

/// Whether a tensor of that name is no weight but a table that follows from the model's shape: its last
/// component has one of the words cos, sin, freq, freqs, mask, tril, or any component before one of rope,
/// rotary, positional; words are separated by _. Nothing that is called weight or bias is one.
bool is_buffer(std::string_view name);

}  // namespace qgen
