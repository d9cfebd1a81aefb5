#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "qgen/weights/checkpoint.h"
#include "qgen/weights/gguf_writer.h"

namespace qgen::cli {

/// A tensor that is to be written, under its name in GGUF.
struct SourceTensor {
  std::string name;
  std::vector<std::int64_t> shape;  ///< outermost first
  std::vector<StoredTensor> parts;  ///< one after the other: experts are stacked, others have one part
  /// Where not 0, the rows are that many heads of q or k, half-split, and become neighbours in pairs: row 2 i
  /// + b of a head is its row b * d / 2 + i in the part.
  std::int64_t rotated_heads = 0;

  /// A vector is a row, but where it is reordered each element is one.
  [[nodiscard]] std::int64_t cols() const noexcept;
  [[nodiscard]] std::int64_t rows() const noexcept;
};

/// A model as GGUF describes it.
struct QuantizeSource {
  GgufHeader header;                         ///< metadata, no tensors yet
  std::vector<SourceTensor> tensors;         ///< in the order of writing
  Checkpoint checkpoint;                     ///< owns the tensors' bytes
  std::vector<std::filesystem::path> files;  ///< that are read and so must not be written
  std::vector<std::vector<float>> made;      ///< tensors that no file has
};

/// `path`: a GGUF file, whose metadata is passed on, or a folder in Hugging Face format. Throws Error.
[[nodiscard]] QuantizeSource read_quantize_source(const std::filesystem::path& path);

/// The folder's config, names and tensors in the terms of GGUF.
[[nodiscard]] QuantizeSource read_folder_source(const std::filesystem::path& folder);

/// tokenizer.* of the folder; `rows` of the embedding, to which the vocabulary is filled up, and further ids
/// that end a text.
void add_vocabulary(const std::filesystem::path& folder, std::int64_t rows,
                    const std::vector<TokenId>& end_ids, GgufHeader& header);

}  // namespace qgen::cli
