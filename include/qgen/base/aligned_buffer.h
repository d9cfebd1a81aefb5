#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace qgen {

/// Zeroed memory aligned to 64 bytes, or to 2 MiB with huge pages requested from that size on.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  /// Throws Error{memory} naming the size where the system has no more.
  explicit AlignedBuffer(std::size_t bytes);

  [[nodiscard]] std::byte* data() noexcept { return data_.get(); }
  [[nodiscard]] const std::byte* data() const noexcept { return data_.get(); }
  [[nodiscard]] std::size_t size() const noexcept { return data_ == nullptr ? 0 : size_; }

  /// The whole buffer as elements of a trivial type T.
  template <typename T>
  [[nodiscard]] std::span<T> as() noexcept {
    return {reinterpret_cast<T*>(data_.get()), size() / sizeof(T)};
  }

 private:
  class Free {
   public:
    Free() noexcept : bytes_(0) {}
    explicit Free(std::size_t bytes) noexcept : bytes_(bytes) {}
    void operator()(std::byte* memory) const noexcept;

   private:
    std::size_t bytes_;
  };
  std::unique_ptr<std::byte, Free> data_;
  std::size_t size_ = 0;
};

}  // namespace qgen
