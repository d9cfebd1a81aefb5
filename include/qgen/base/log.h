#pragma once

#include <functional>
#include <string>
#include <utility>

namespace qgen {

enum class LogLevel { verbose, warning };

/// Where rooms below the command line leave remarks. They never print: the command line supplies the sink.
class Log {
 public:
  using Sink = std::function<void(LogLevel, const std::string&)>;

  Log() = default;
  explicit Log(Sink sink) : sink_(std::move(sink)) {}

  void verbose(const std::string& message) const { write(LogLevel::verbose, message); }
  void warning(const std::string& message) const { write(LogLevel::warning, message); }

 private:
  void write(LogLevel level, const std::string& message) const {
    if (sink_) sink_(level, message);
  }
  Sink sink_;
};

}  // namespace qgen
