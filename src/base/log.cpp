#include "qgen/base/log.h"

#include <spdlog/details/null_mutex.h>
#include <spdlog/logger.h>
#include <spdlog/pattern_formatter.h>
#include <spdlog/sinks/base_sink.h>

#include <string>
#include <utility>

#include "qgen/base/utf8.h"

namespace qgen {
namespace {

spdlog::level::level_enum native(LogLevel level) {
  switch (level) {
    case LogLevel::verbose:
      return spdlog::level::debug;
    case LogLevel::warning:
      return spdlog::level::warn;
    case LogLevel::error:
      break;
  }
  return spdlog::level::err;
}

class LineSink final : public spdlog::sinks::base_sink<spdlog::details::null_mutex> {
 public:
  explicit LineSink(Log::Sink write) : write_(std::move(write)) {}

 private:
  void sink_it_(const spdlog::details::log_msg& message) override {
    spdlog::memory_buf_t line;
    formatter_->format(message, line);
    write_({line.data(), line.size()});
  }
  void flush_() override {}

  Log::Sink write_;
};

}  // namespace

/// A logger of its own: the library's registry of loggers, which is global, is left alone.
struct Log::Impl {
  Impl(LogLevel least, Sink write) : logger("qgen", std::make_shared<LineSink>(std::move(write))) {
    logger.set_level(native(least));
    logger.set_formatter(std::make_unique<spdlog::pattern_formatter>("qgen: %v"));
    // Called where writing threw, within the handler of the exception; by default the library prints it.
    logger.set_error_handler([](const std::string& /*what*/) { throw; });
  }
  spdlog::logger logger;
};

Log::Log(LogLevel least, Sink sink) : impl_(std::make_shared<Impl>(least, std::move(sink))) {}

void Log::write(LogLevel level, std::string_view message) const {
  if (!impl_ || !impl_->logger.should_log(native(level))) return;
  const std::string safe = escape_control(message);
  impl_->logger.log(native(level), spdlog::string_view_t(safe.data(), safe.size()));
}

}  // namespace qgen
