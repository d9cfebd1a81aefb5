#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "qgen/base/aligned_buffer.h"
#include "qgen/device/device.h"
#include "qgen/kernels/kernel_table.h"
#include "qgen/plan/plan.h"

namespace qgen {

/// Where keys and values of a model lie within one page. A page holds kKvChunk positions of every layer and
/// head.
class KvLayout {
 public:
  KvLayout(const PlanDims& dims, KvType type);

  [[nodiscard]] std::size_t page_bytes() const noexcept { return page_bytes_; }
  /// Bytes that one position takes, scales included.
  [[nodiscard]] std::int64_t bytes_per_position() const noexcept;
  [[nodiscard]] KvChunk chunk(std::byte* page, std::int64_t layer, std::int64_t head) const noexcept;

 private:
  std::int64_t kv_heads_;
  std::size_t vector_bytes_;  // keys or values of one head in one page
  std::size_t chunk_bytes_;
  std::size_t page_bytes_;
};

/// One sequence's cache: pages, shared with forks until written to.
class CpuTimeline final : public Timeline {
 public:
  explicit CpuTimeline(std::shared_ptr<const KvLayout> layout) : layout_(std::move(layout)) {}

  [[nodiscard]] std::int64_t position() const noexcept override { return position_; }
  void truncate(std::int64_t position) override;
  [[nodiscard]] std::unique_ptr<Timeline> fork() const override;
  [[nodiscard]] std::size_t bytes() const noexcept override { return pages_.size() * layout_->page_bytes(); }

  /// Makes room for `count` more positions that nobody else sees. Throws Error{memory}; position() does not
  /// change.
  void reserve(std::int64_t count);
  /// Declares `count` reserved positions written.
  void advance(std::int64_t count) noexcept { position_ += count; }
  /// The chunk that holds positions [index * kKvChunk, (index + 1) * kKvChunk).
  [[nodiscard]] KvChunk chunk(std::int64_t index, std::int64_t layer, std::int64_t head) const noexcept {
    return layout_->chunk(pages_[static_cast<std::size_t>(index)]->data(), layer, head);
  }

 private:
  std::shared_ptr<const KvLayout> layout_;
  std::vector<std::shared_ptr<AlignedBuffer>> pages_;
  std::int64_t position_ = 0;
};

}  // namespace qgen
