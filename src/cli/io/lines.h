#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cli/io/descriptors.h"

namespace qgen::cli {

/// Lines of a file of any size, read as needed.
class LineReader {
 public:
  /// "-" is stdin. Throws Error{file}.
  explicit LineReader(const std::string& path);

  /// The next line without its newline, valid until the next call; nothing at the end. Throws Error{file}.
  std::optional<std::string_view> next();
  /// "FILE, line N" of the last line.
  [[nodiscard]] std::string place() const;

 private:
  bool fill();

  std::string source_;
  Descriptor file_;
  std::string buffer_;
  std::size_t at_ = 0;  // where the next line begins
  bool ended_ = false;
  std::int64_t number_ = 0;
};

}  // namespace qgen::cli
