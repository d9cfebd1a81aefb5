#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "cli/exit_code.h"

namespace qgen::cli {

/// Standard output. Text is handed to the system by flush(), or by itself when much has gathered.
class Output {
 public:
  /// `fd` is not closed.
  explicit Output(int fd);

  [[nodiscard]] bool is_terminal() const noexcept { return terminal_; }

  /// Adds text. False once the output is gone; then nothing more is written.
  bool write(std::string_view text);
  bool flush();
  /// Ends an unfinished line where a person is looking at it; in a pipe or file nothing is added.
  void end_line_on_terminal();

  /// Flushes and tells how writing went: `finished`, or `reader_gone` for a closed pipe. Throws
  /// Error{output} with the system's reason for anything else.
  [[nodiscard]] ExitCode finish();

 private:
  int fd_;
  bool terminal_;
  int problem_ = 0;  // errno of the write that failed
  char last_ = '\n';
  std::string pending_;
};

}  // namespace qgen::cli
