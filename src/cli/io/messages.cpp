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

}  // namespace

Messages::Messages(Verbosity verbosity) : verbosity_(verbosity), terminal_(::isatty(STDERR_FILENO) == 1) {}

Messages::~Messages() {
  clear_progress();
}

void Messages::say(std::string_view text) const {
  clear_progress();
  put("qgen: " + escape_control(text) + "\n");
}

void Messages::error(std::string_view text) const {
  say(text);
}

void Messages::note(std::string_view text) const {
  if (verbosity_ != Verbosity::quiet) say(text);
}

void Messages::detail(std::string_view text) const {
  if (verbosity_ == Verbosity::verbose) say(text);
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

Log Messages::log() const {
  return Log([this](LogLevel level, const std::string& text) {
    level == LogLevel::verbose ? detail(text) : note(text);
  });
}

}  // namespace qgen::cli
