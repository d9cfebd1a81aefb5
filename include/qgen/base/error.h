#pragma once

#include <stdexcept>
#include <string>

namespace qgen {

/// What went wrong, in the terms that decide the exit code of the program.
enum class ErrorKind {
  usage,        ///< the caller asked for something that makes no sense
  file,         ///< a file is missing, unreadable, damaged or contradicts another one
  unsupported,  ///< a well-formed file or option asks for something that this build cannot do
  memory,       ///< not enough memory
  device,       ///< a device cannot be used or failed
  output,       ///< the result could not be written
};

/// The only exception type that qgen throws, and only while loading and setting up. The message is one
/// sentence that names the file, the tensor or key, what was expected and what was found. Strings taken from
/// files must be passed through escape_control() (utf8.h) before they become part of it.
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& message) : std::runtime_error(message), kind_(kind) {}
  [[nodiscard]] ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace qgen
