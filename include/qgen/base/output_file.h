#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "qgen/base/bytes.h"

namespace qgen {

/// A file that comes into being whole or not at all: what is written goes to a file without a name in the
/// same folder, which takes the final name, replacing a file that has it, when commit() has brought it to the
/// disk. Until then, and after any failure, nothing under the final name changes, and a program that is
/// killed before commit() leaves nothing. File systems that know no files without names get one called
/// ".NAME.<number>.tmp", which the destructor removes.
class OutputFile {
 public:
  /// A symbolic link at `path` is followed. Throws Error{output} where no file can be created, or where what
  /// stands at `path` is no regular file.
  explicit OutputFile(const std::filesystem::path& path);
  ~OutputFile();
  OutputFile(const OutputFile&) = delete;
  OutputFile& operator=(const OutputFile&) = delete;

  /// Throws Error{output} with the system's reason, for example a full disk.
  void write(Bytes part);
  [[nodiscard]] std::uint64_t size() const noexcept { return size_; }
  /// Once, after all has been written. Throws Error{output}.
  void commit();

 private:
  [[noreturn]] void fail(int reason) const;
  template <class Try>
  void name_temporary(const Try& create);

  std::filesystem::path path_, temporary_;
  int fd_ = -1;
  std::uint64_t size_ = 0;
};

}  // namespace qgen
