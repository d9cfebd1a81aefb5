#include "cli/io/output.h"

#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "cli/io/descriptors.h"
#include "qgen/base/error.h"

namespace qgen::cli {
namespace {

constexpr std::size_t kFlushAt = std::size_t{1} << 16;

/// Writes everything and gives 0, or errno.
int write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::write(fd, text.data(), text.size());
    if (count >= 0) {
      text.remove_prefix(static_cast<std::size_t>(count));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_for(fd, POLLOUT, -1);  // somebody made the descriptor non-blocking
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace

Output::Output(int fd) : fd_(fd), terminal_(::isatty(fd) == 1) {}

bool Output::write(std::string_view text) {
  if (problem_ != 0) return false;
  if (text.empty()) return true;
  last_ = text.back();
  pending_ += text;
  return pending_.size() < kFlushAt || flush();
}

bool Output::flush() {
  if (problem_ == 0) problem_ = write_all(fd_, pending_);
  pending_.clear();
  return problem_ == 0;
}

void Output::end_line_on_terminal() {
  if (terminal_ && last_ != '\n') write("\n");
}

ExitCode Output::finish() {
  flush();
  if (problem_ == EPIPE) return ExitCode::reader_gone;
  if (problem_ == EBADF) throw Error(ErrorKind::output, "cannot write the output: stdout is closed");
  if (problem_ != 0) {
    throw Error(ErrorKind::output, std::string("cannot write the output: ") + std::strerror(problem_));
  }
  return ExitCode::finished;
}

}  // namespace qgen::cli
