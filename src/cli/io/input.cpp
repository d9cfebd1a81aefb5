#include "cli/io/input.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "cli/io/descriptors.h"
#include "qgen/base/error.h"
#include "qgen/base/utf8.h"

namespace qgen::cli {
namespace {

constexpr int kLongWaitMs = 5000;
constexpr std::size_t kChunk = std::size_t{1} << 16;

[[noreturn]] void fail(const std::string& source) {
  throw Error(ErrorKind::file, "cannot read " + escape_control(source) + ": " + std::strerror(errno));
}

}  // namespace

Descriptor open_for_reading(const std::string& path) {
  Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.get() < 0) fail(path);
  return file;
}

std::size_t read_some(int fd, const std::string& source, char* to, std::size_t size) {
  while (true) {
    const ssize_t count = ::read(fd, to, size);
    if (count >= 0) return static_cast<std::size_t>(count);
    if (errno == EAGAIN || errno == EWOULDBLOCK) {
      wait_for(fd, POLLIN, -1);  // somebody made the descriptor non-blocking
    } else if (errno != EINTR) {
      fail(source);
    }
  }
}

std::string read_all(int fd, const std::string& source, const std::function<void()>& waiting) {
  if (waiting && !wait_for(fd, POLLIN, kLongWaitMs)) waiting();
  std::string bytes;
  std::size_t used = 0;
  while (true) {
    if (bytes.size() - used < kChunk) bytes.resize(bytes.size() + std::max(bytes.size(), kChunk));
    const std::size_t count = read_some(fd, source, bytes.data() + used, bytes.size() - used);
    if (count == 0) break;
    used += count;
  }
  bytes.resize(used);
  return bytes;
}

std::string read_file(const std::string& path) {
  const Descriptor file = open_for_reading(path);
  return read_all(file.get(), path);
}

}  // namespace qgen::cli
