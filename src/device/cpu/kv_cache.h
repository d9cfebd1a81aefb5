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

/// Hands out pages and keeps a few of those that come back: fresh memory has to be cleared by the system,
/// which can take longer than filling it. Must outlive its pages.
class KvPages {
 public:
  using Page = std::shared_ptr<AlignedBuffer>;

  explicit KvPages(const KvLayout& layout) : layout_(layout) { spare_.reserve(kMostSpare); }

  [[nodiscard]] const KvLayout& layout() const noexcept { return layout_; }
  /// A page with anything in it, which returns here when nobody holds it any more. Throws Error{memory}.
  [[nodiscard]] Page take();

 private:
  static constexpr std::size_t kMostSpare = 4;
  void give_back(std::unique_ptr<AlignedBuffer> page) noexcept;

  KvLayout layout_;
  std::vector<std::unique_ptr<AlignedBuffer>> spare_;
};

/// One sequence's cache: pages, shared with forks until written to.
class CpuTimeline final : public Timeline {
 public:
  explicit CpuTimeline(std::shared_ptr<KvPages> pages) : source_(std::move(pages)) {}

  [[nodiscard]] std::int64_t position() const noexcept override { return position_; }
  void truncate(std::int64_t position) override;
  [[nodiscard]] std::unique_ptr<Timeline> fork() const override;
  [[nodiscard]] std::size_t bytes() const noexcept override {
    return pages_.size() * source_->layout().page_bytes();
  }

  /// Makes room for `count` more positions that nobody else sees. Throws Error{memory}; position() does not
  /// change.
  void reserve(std::int64_t count);
  /// Declares `count` reserved positions written.
  void advance(std::int64_t count) noexcept { position_ += count; }
  /// The chunk that holds positions [index * kKvChunk, (index + 1) * kKvChunk).
  [[nodiscard]] KvChunk chunk(std::int64_t index, std::int64_t layer, std::int64_t head) const noexcept {
    return source_->layout().chunk(pages_[static_cast<std::size_t>(index)]->data(), layer, head);
  }

 private:
  std::shared_ptr<KvPages> source_;  // before the pages, which go back there
  std::vector<KvPages::Page> pages_;
  std::int64_t position_ = 0;
};

}  // namespace qgen
