#include "cli/io/messages.h"

#include <unistd.h>

#include <cerrno>

#include "qgen/base/utf8.h"

namespace qgen::cli {
namespace {

/// In one piece, so that lines of several programs on one terminal do not mix. There is no one to tell that
/// stderr cannot be written.
void put(std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(STDERR_FILENO, text.data(), text.size());
    if (count < 0 && errno != EINTR) return;
    if (count > 0) text.remove_prefix(static_cast<std::size_t>(count));
  }
}

LogLevel least_level(Verbosity verbosity) {
  switch (verbosity) {
    case Verbosity::quiet:
      return LogLevel::error;
    case Verbosity::normal:
      return LogLevel::warning;
    case Verbosity::verbose:
      break;
  }
  return LogLevel::verbose;
}

}  // namespace

Messages::Messages(Verbosity verbosity)
    : verbosity_(verbosity),
      terminal_(::isatty(STDERR_FILENO) == 1),
      log_(least_level(verbosity), [this](std::string_view line) {
        clear_progress();
        put(line);
      }) {}

Messages::~Messages() {
  clear_progress();
}

void Messages::progress(std::string_view text) {
  if (!terminal_ || verbosity_ == Verbosity::quiet) return;
  clear_progress();
  // Longer lines would wrap, and what has wrapped cannot be erased.
  constexpr std::size_t kWidth = 70;
  const std::string line = escape_control(text.substr(0, kWidth)).substr(0, kWidth);
  put(line);
  shown_ = line.size();
}

void Messages::clear_progress() const {
  if (shown_ == 0) return;
  // Blanks instead of an escape sequence: any terminal understands them.
  put("\r" + std::string(shown_, ' ') + "\r");
  shown_ = 0;
}

}  // namespace qgen::cli
