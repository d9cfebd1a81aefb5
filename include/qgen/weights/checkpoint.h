#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/base/aligned_buffer.h"
#include "qgen/base/bytes.h"
#include "qgen/base/mapped_file.h"
#include "qgen/tensor/tensor_view.h"

namespace qgen {

class Gguf;

/// A tensor as a file has it: shape outermost first, contiguous, row-major.
struct StoredTensor {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;  ///< empty: one element
  Bytes data;                       ///< aligned to the size of an element
  std::string file;                 ///< for messages, already escaped
};

/// The tensors of a model, by name. After construction every view is in bounds and of a known dtype. Tensors
/// stay where the file is mapped; only those that a file has at odd addresses are copied. Experts that a file
/// has as one stack are a tensor each.
class Checkpoint {
 public:
  using Tensors = std::map<std::string, StoredTensor, std::less<>>;

  /// model.safetensors, or else the shards that model.safetensors.index.json names. A shard is a file of the
  /// folder itself, named without any path. Every entry of the index must hold; tensors of a shard that the
  /// index leaves out are taken too. Throws Error{file} naming file, tensor, expected and found.
  static Checkpoint from_folder(const std::filesystem::path& folder);
  /// One safetensors file already in memory (the embedded model); `data` must outlive the checkpoint.
  static Checkpoint from_bytes(Bytes data, std::string_view source);
  /// The tensors of a GGUF file under the names that they have here (gguf.h), where they are mapped; a stack
  /// of experts becomes one tensor each (".mlp.experts.3.gate_proj.weight"). Takes the files over: what
  /// refers to them lives as long as the checkpoint. Throws Error{unsupported} for a tensor that no model
  /// here has.
  static Checkpoint from_gguf(Gguf&& gguf);

  /// What another reader found: tensors are views into `files`, `copies` or memory that outlives them.
  struct Parts {
    std::string source;  ///< for messages, already escaped
    std::vector<MappedFile> files;
    std::vector<AlignedBuffer> copies;
    Tensors tensors;
  };
  static Checkpoint assemble(Parts parts);

  [[nodiscard]] const StoredTensor* find(std::string_view name) const;

  /// The tensor `name` with exactly `shape` (one or two dimensions; one gives a single row) and a weight
  /// dtype. Throws Error{file} that names both shapes, or the missing tensor.
  [[nodiscard]] TensorView require(std::string_view name, std::initializer_list<std::int64_t> shape) const;

  /// Gives back the memory of bytes of tensors that are not needed for now; see MappedFile::release. What was
  /// not mapped by this object stays. May be called from several threads.
  void release(Bytes part) const noexcept;

  /// Sizes of the mapped files and when they last changed, a line each: what has another stamp may hold other
  /// numbers.
  [[nodiscard]] std::string stamp() const;

  [[nodiscard]] const Tensors& tensors() const noexcept { return tensors_; }

 private:
  void add(Bytes file, const std::string& source);

  std::string source_;          ///< for messages, already escaped
  bool names_of_gguf_ = false;  ///< messages give the names that GGUF has
  std::vector<MappedFile> files_;
  std::vector<AlignedBuffer> copies_;
  Tensors tensors_;
};

}  // namespace qgen
