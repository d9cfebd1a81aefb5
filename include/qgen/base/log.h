#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

namespace qgen {

/// How much a person has to know of it.
enum class LogLevel : std::uint8_t { verbose, warning, error };

/// Where remarks are left. Only the command line makes one that writes anywhere: rooms below are handed a log
/// and never print. Copies write to the same place. Not for use by two threads at once.
class Log {
 public:
  /// Receives one line, with its newline.
  using Sink = std::function<void(std::string_view line)>;

  /// Drops everything.
  Log() = default;
  /// Drops what is below `least` and passes the rest on as lines "qgen: <message>" that are safe to print:
  /// control characters and bytes that are no UTF-8 are escaped. What `sink` throws goes through.
  Log(LogLevel least, Sink sink);

  void verbose(std::string_view message) const { write(LogLevel::verbose, message); }
  void warning(std::string_view message) const { write(LogLevel::warning, message); }
  void error(std::string_view message) const { write(LogLevel::error, message); }

 private:
  void write(LogLevel level, std::string_view message) const;

  struct Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace qgen
