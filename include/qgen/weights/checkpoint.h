#pragma once

#include <cstdint>
#include <filesystem>
#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/base/bytes.h"
#include "qgen/base/mapped_file.h"
#include "qgen/tensor/tensor_view.h"

namespace qgen {

/// A tensor as a file has it: shape outermost first, contiguous, row-major.
struct StoredTensor {
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  Bytes data;
  std::string file;  ///< for messages, already escaped
};

/// The tensors of a model, by name. After construction every view is in bounds and of a known dtype.
class Checkpoint {
 public:
  /// model.safetensors, or the shards that model.safetensors.index.json names. Throws Error{file} naming
  /// file, tensor, expected and found.
  static Checkpoint from_folder(const std::filesystem::path& folder);
  /// One safetensors file already in memory (the embedded model); `data` must outlive the checkpoint.
  static Checkpoint from_bytes(Bytes data, std::string_view source);

  [[nodiscard]] const StoredTensor* find(std::string_view name) const;

  /// The tensor `name` with exactly `shape` (one or two dimensions) and a weight dtype. Throws Error{file}
  /// that names both shapes, or the missing tensor.
  [[nodiscard]] TensorView require(std::string_view name, std::initializer_list<std::int64_t> shape) const;

  [[nodiscard]] const std::map<std::string, StoredTensor, std::less<>>& tensors() const noexcept {
    return tensors_;
  }

 private:
  std::vector<MappedFile> files_;
  std::map<std::string, StoredTensor, std::less<>> tensors_;
};

}  // namespace qgen
