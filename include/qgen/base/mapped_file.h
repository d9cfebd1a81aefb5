#pragma once

#include <cstdint>
#include <filesystem>

#include "qgen/base/bytes.h"

namespace qgen {

/// A regular file mapped read-only. Views into it live as long as the object does.
class MappedFile {
 public:
  /// Throws Error{file} naming the path and the system's reason if the file cannot be opened, is not a
  /// regular file or cannot be mapped. An empty file gives empty bytes.
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] Bytes bytes() const noexcept { return bytes_; }
  /// When its contents last changed, in nanoseconds since 1970.
  [[nodiscard]] std::int64_t modified() const noexcept { return modified_; }
  /// Gives back the memory of the whole pages within `part` of bytes(); they stay readable and come back from
  /// the file when they are read again.
  void release(Bytes part) const noexcept;

 private:
  Bytes bytes_;
  std::int64_t modified_ = 0;
};

}  // namespace qgen
