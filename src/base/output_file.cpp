#include "qgen/base/output_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>

#include "qgen/base/error.h"
#include "qgen/base/utf8.h"

namespace qgen {
namespace {

namespace fs = std::filesystem;

constexpr mode_t kNewFile = 0666;  // the permissions that any new file gets, within the umask

[[noreturn]] void refuse(const fs::path& path, const std::string& reason) {
  throw Error(ErrorKind::output, "cannot write " + escape_control(path.string()) + ": " + reason);
}

std::string text_of(int reason) {
  return std::generic_category().message(reason);
}

fs::path followed(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::symlink_status(path, error).type();
  if (type != fs::file_type::symlink) return path;
  const fs::path target = fs::weakly_canonical(path, error);
  return error ? path : target;
}

void require_replaceable(const fs::path& path) {
  if (!path.has_filename()) refuse(path, "it names a folder, a file was expected");
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::not_found || type == fs::file_type::regular) return;
  if (type == fs::file_type::directory) refuse(path, "it is a folder, a file was expected");
  refuse(path, error ? error.message() : "it is no regular file");
}

fs::path folder_of(const fs::path& path) {
  return path.has_parent_path() ? path.parent_path() : fs::path(".");
}

/// A name of the open file by which it can be linked.
std::string process_path(int fd) {
  return "/proc/self/fd/" + std::to_string(fd);
}

/// -1 where there can be none that gets a name later.
int open_unnamed(const fs::path& folder) {
#ifdef O_TMPFILE
  const int fd = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, kNewFile);
  if (fd < 0 || ::access(process_path(fd).c_str(), F_OK) == 0) return fd;
  ::close(fd);
#endif
  return -1;
}

/// Where renamed entries are kept, so that a rename is on the disk once this is.
int synchronize_folder(const fs::path& path) {
  const int fd = ::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (fd < 0) return errno;
  const int result = ::fsync(fd) == 0 ? 0 : errno;
  ::close(fd);
  // Some file systems do not know how to do this for folders.
  return result == EINVAL || result == EROFS ? 0 : result;
}

}  // namespace

OutputFile::OutputFile(const fs::path& path) : path_(followed(path)) {
  require_replaceable(path_);
  fd_ = open_unnamed(folder_of(path_));
  if (fd_ >= 0) return;
  name_temporary([this] {
    fd_ = ::open(temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, kNewFile);
    return fd_ >= 0;
  });
}

OutputFile::~OutputFile() {
  if (fd_ < 0) return;
  ::close(fd_);
  if (!temporary_.empty()) ::unlink(temporary_.c_str());
}

/// Sets temporary_ to a name for which create() does not fail because a file has it.
template <class Try>
void OutputFile::name_temporary(const Try& create) {
  constexpr int kTries = 1000;
  for (int number = 0;; ++number) {
    temporary_ = path_;
    temporary_.replace_filename("." + path_.filename().string() + "." + std::to_string(::getpid() + number) +
                                ".tmp");
    if (create()) return;
    if (errno == EEXIST && number < kTries) continue;
    const int reason = errno;
    temporary_.clear();
    fail(reason);
  }
}

void OutputFile::fail(int reason) const {
  refuse(path_, text_of(reason));
}

void OutputFile::write(Bytes part) {
  while (!part.empty()) {
    const ssize_t count = ::write(fd_, part.data(), part.size());
    if (count < 0 && errno != EINTR) fail(errno);
    if (count <= 0) continue;
    part = part.subspan(static_cast<std::size_t>(count));
    size_ += static_cast<std::uint64_t>(count);
  }
}

void OutputFile::commit() {
  if (::fsync(fd_) != 0) fail(errno);
  if (temporary_.empty()) {
    const std::string source = process_path(fd_);
    name_temporary([&] {
      return ::linkat(AT_FDCWD, source.c_str(), AT_FDCWD, temporary_.c_str(), AT_SYMLINK_FOLLOW) == 0;
    });
  }
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) fail(errno);
  const int closed = ::close(fd_) == 0 ? 0 : errno;
  fd_ = -1;
  if (closed != 0) fail(closed);
  if (const int reason = synchronize_folder(path_); reason != 0) fail(reason);
}

}  // namespace qgen
