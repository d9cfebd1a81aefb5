#include "qgen/base/aligned_buffer.h"

#include <sys/mman.h>

#include <limits>
#include <string>

#include "qgen/base/error.h"

namespace qgen {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

[[noreturn]] void fail(std::size_t bytes) {
  throw Error(ErrorKind::memory, "not enough memory: " + std::to_string(bytes) + " bytes were asked for");
}

void* map(std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

/// Maps `bytes` on a huge-page border by mapping too much and giving the ends back.
void* map_huge(std::size_t bytes) {
  auto* memory = static_cast<std::byte*>(map(bytes + kHugePage));
  if (memory == nullptr) return nullptr;
  const std::size_t front = (kHugePage - reinterpret_cast<std::size_t>(memory) % kHugePage) % kHugePage;
  if (front != 0) ::munmap(memory, front);
  ::munmap(memory + front + bytes, kHugePage - front);
  ::madvise(memory + front, bytes, MADV_HUGEPAGE);  // only a wish: the result is right without it
  return memory + front;
}

}  // namespace

AlignedBuffer::AlignedBuffer(std::size_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  if (bytes > std::numeric_limits<std::size_t>::max() / 2) fail(bytes);
  const std::size_t page = bytes >= kHugePage ? kHugePage : 4096;
  const std::size_t rounded = (bytes + page - 1) / page * page;
  void* memory = page == kHugePage ? map_huge(rounded) : map(rounded);
  if (memory == nullptr) fail(bytes);
  data_ = std::unique_ptr<std::byte, Free>(static_cast<std::byte*>(memory), Free(rounded));
}

void AlignedBuffer::Free::operator()(std::byte* memory) const noexcept {
  ::munmap(memory, bytes_);
}

}  // namespace qgen
