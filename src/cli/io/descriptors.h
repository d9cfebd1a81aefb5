#pragma once

#include <utility>

namespace qgen::cli {

/// An open file descriptor, closed at the end; standard input is left open.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor();
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&&) = delete;

  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

/// Puts /dev/null in the place of standard streams that were closed by the caller, so that no file that is
/// opened later becomes one of them. Standard output stays unwritable then: writing to it is an error, as it
/// should be. Call before anything is opened.
void occupy_standard_streams();

/// Waits until `fd` is ready for `events` (poll.h), at most `timeout_ms` (-1: without limit). False after the
/// timeout or a signal.
bool wait_for(int fd, short events, int timeout_ms);

}  // namespace qgen::cli
