#include "cli/io/messages.h"

#include <spdlog/logger.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <unistd.h>

#include <cstdio>

#include "qgen/base/utf8.h"

namespace qgen::cli {

struct Messages::Impl {
  spdlog::logger logger{"qgen", std::make_shared<spdlog::sinks::stderr_sink_st>()};
};

Messages::Messages(Verbosity verbosity)
    : verbosity_(verbosity), terminal_(::isatty(STDERR_FILENO) == 1), impl_(std::make_unique<Impl>()) {
  impl_->logger.set_pattern("qgen: %v");
  switch (verbosity) {
    case Verbosity::quiet:
      impl_->logger.set_level(spdlog::level::err);
      break;
    case Verbosity::normal:
      impl_->logger.set_level(spdlog::level::info);
      break;
    case Verbosity::verbose:
      impl_->logger.set_level(spdlog::level::debug);
      break;
  }
}

Messages::~Messages() {
  clear_progress();
}

void Messages::error(std::string_view text) const {
  clear_progress();
  impl_->logger.error(escape_control(text));
}

void Messages::warning(std::string_view text) const {
  clear_progress();
  impl_->logger.warn(escape_control(text));
}

void Messages::note(std::string_view text) const {
  clear_progress();
  impl_->logger.info(escape_control(text));
}

void Messages::detail(std::string_view text) const {
  if (verbosity_ != Verbosity::verbose) return;
  clear_progress();
  impl_->logger.debug(escape_control(text));
}

void Messages::progress(std::string_view text) {
  if (!terminal_ || verbosity_ == Verbosity::quiet) return;
  clear_progress();
  // Longer lines would wrap, and what has wrapped cannot be erased.
  constexpr std::size_t kWidth = 70;
  const std::string line = escape_control(text.substr(0, kWidth)).substr(0, kWidth);
  std::fputs(line.c_str(), stderr);
  std::fflush(stderr);
  shown_ = line.size();
}

void Messages::clear_progress() const {
  if (shown_ == 0) return;
  // Blanks instead of an escape sequence: any terminal understands them.
  std::fprintf(stderr, "\r%*s\r", static_cast<int>(shown_), "");
  std::fflush(stderr);
  shown_ = 0;
}

Log Messages::log() const {
  return Log([this](LogLevel level, const std::string& text) {
    level == LogLevel::verbose ? detail(text) : warning(text);
  });
}

}  // namespace qgen::cli
