#include "device/cpu/kv_cache.h"

#include <algorithm>
#include <cstring>

namespace qgen {
namespace {

constexpr std::size_t kScaleBytes = static_cast<std::size_t>(kKvChunk) * sizeof(float);

std::size_t element_bytes(KvType type) {
  return type == KvType::f32 ? 4 : type == KvType::q8 ? 1 : 2;
}

}  // namespace

KvLayout::KvLayout(const PlanDims& dims, KvType type)
    : kv_heads_(dims.kv_heads),
      vector_bytes_(static_cast<std::size_t>(kKvChunk * dims.head_dim) * element_bytes(type)),
      chunk_bytes_(2 * (vector_bytes_ + kScaleBytes)),
      page_bytes_(static_cast<std::size_t>(dims.layers * dims.kv_heads) * chunk_bytes_) {}

std::int64_t KvLayout::bytes_per_position() const noexcept {
  return static_cast<std::int64_t>(page_bytes_) / kKvChunk;
}

KvChunk KvLayout::chunk(std::byte* page, std::int64_t layer, std::int64_t head) const noexcept {
  std::byte* base = page + static_cast<std::size_t>(layer * kv_heads_ + head) * chunk_bytes_;
  KvChunk chunk;
  chunk.k = base;
  chunk.v = base + vector_bytes_;
  chunk.k_scale = reinterpret_cast<float*>(base + 2 * vector_bytes_);
  chunk.v_scale = reinterpret_cast<float*>(base + 2 * vector_bytes_ + kScaleBytes);
  return chunk;
}

KvPages::Page KvPages::take() {
  std::unique_ptr<AlignedBuffer> page;
  if (spare_.empty()) {
    page = std::make_unique<AlignedBuffer>(layout_.page_bytes());
  } else {
    page = std::move(spare_.back());
    spare_.pop_back();
  }
  return {page.release(), [this](AlignedBuffer* back) { give_back(std::unique_ptr<AlignedBuffer>(back)); }};
}

void KvPages::give_back(std::unique_ptr<AlignedBuffer> page) noexcept {
  if (spare_.size() < kMostSpare) spare_.push_back(std::move(page));  // reserved: cannot throw
}

void CpuTimeline::truncate(std::int64_t position) {
  position_ = position;
  pages_.resize(static_cast<std::size_t>((position + kKvChunk - 1) / kKvChunk));
}

std::unique_ptr<Timeline> CpuTimeline::fork() const {
  return std::make_unique<CpuTimeline>(*this);
}

void CpuTimeline::reserve(std::int64_t count) {
  const auto first = static_cast<std::size_t>(position_ / kKvChunk);
  const auto needed = static_cast<std::size_t>((position_ + count + kKvChunk - 1) / kKvChunk);
  for (std::size_t i = first; i < std::min(needed, pages_.size()); ++i) {
    if (pages_[i].use_count() == 1) continue;
    KvPages::Page own = source_->take();
    std::memcpy(own->data(), pages_[i]->data(), own->size());
    pages_[i] = std::move(own);
  }
  while (pages_.size() < needed) pages_.push_back(source_->take());
}

}  // namespace qgen
