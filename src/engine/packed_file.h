#pragma once

#include <filesystem>
#include <optional>
#include <string>

#include "qgen/base/bytes.h"
#include "qgen/base/mapped_file.h"

namespace qgen {

/// Weights in the form that a device reads, kept in a file so that they need not be packed again: a first
/// line that says so, a header that says of what, zeros up to a whole page, the weights. Nothing in it is
/// interpreted: the header is the one that is expected, or the file is not used.
class PackedFile {
 public:
  /// Throws Error{file} where there is a file that cannot be read or is no file of packed weights.
  PackedFile(std::filesystem::path path, const std::string& header);

  /// Empty where there are none for this header.
  [[nodiscard]] Bytes weights() const noexcept;
  /// Replaces the file as a whole. Does not change weights(). Throws Error{output}.
  void write(Bytes weights) const;

 private:
  std::filesystem::path path_;
  std::string start_;  // all that comes before the weights
  std::optional<MappedFile> file_;
};

}  // namespace qgen
