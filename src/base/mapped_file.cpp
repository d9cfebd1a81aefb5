#include "qgen/base/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "qgen/base/error.h"
#include "qgen/base/utf8.h"

namespace qgen {
namespace {

class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  [[nodiscard]] int get() const noexcept { return fd_; }

 private:
  int fd_;
};

[[noreturn]] void fail(const std::filesystem::path& path, const std::string& reason) {
  throw Error(ErrorKind::file, "cannot read " + escape_control(path.string()) + ": " + reason);
}

}  // namespace

MappedFile::MappedFile(const std::filesystem::path& path) {
  // O_NONBLOCK keeps a FIFO without a writer from blocking the open; the type check below then refuses it.
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) fail(path, std::strerror(errno));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0) fail(path, std::strerror(errno));
  if (S_ISDIR(status.st_mode)) fail(path, "it is a directory, a file was expected");
  if (!S_ISREG(status.st_mode)) fail(path, "it is not a regular file");
  modified_ = std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
  const auto size = static_cast<std::size_t>(status.st_size);
  if (size == 0) return;
  void* memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (memory == MAP_FAILED) {
    if (errno == ENOMEM) {
      throw Error(ErrorKind::memory, "not enough address space to map " + escape_control(path.string()) +
                                         " (" + std::to_string(size) + " bytes)");
    }
    fail(path, std::strerror(errno));
  }
  bytes_ = Bytes(static_cast<const std::byte*>(memory), size);
}

void MappedFile::release(Bytes part) const noexcept {
  const auto page = static_cast<std::uintptr_t>(::sysconf(_SC_PAGESIZE));
  const auto begin = (reinterpret_cast<std::uintptr_t>(part.data()) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(part.data()) + part.size()) / page * page;
  if (begin >= end) return;
  auto* memory =
      const_cast<std::byte*>(part.data()) + (begin - reinterpret_cast<std::uintptr_t>(part.data()));
  ::madvise(memory, end - begin, MADV_DONTNEED);  // only a wish
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : bytes_(std::exchange(other.bytes_, Bytes{})), modified_(other.modified_) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(bytes_, other.bytes_);
  std::swap(modified_, other.modified_);
  return *this;
}

}  // namespace qgen
