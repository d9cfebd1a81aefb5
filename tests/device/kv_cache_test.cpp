#include "device/cpu/kv_cache.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>

namespace qgen {
namespace {

constexpr PlanDims kDims{3, 32, 4, 2, 8, 48, 67, 4096};

std::shared_ptr<const KvLayout> layout(KvType type) {
  return std::make_shared<KvLayout>(kDims, type);
}

std::shared_ptr<KvPages> pages(KvType type) {
  return std::make_shared<KvPages>(KvLayout(kDims, type));
}

TEST(KvLayout, CountsBytesOfOnePosition) {
  // Per layer and head: key and value of 8 elements and a scale of 4 bytes for each of them.
  EXPECT_EQ(layout(KvType::f16)->bytes_per_position(), 3 * 2 * 2 * (8 * 2 + 4));
  EXPECT_EQ(layout(KvType::bf16)->bytes_per_position(), 3 * 2 * 2 * (8 * 2 + 4));
  EXPECT_EQ(layout(KvType::f32)->bytes_per_position(), 3 * 2 * 2 * (8 * 4 + 4));
}

TEST(KvLayout, ChunksTileThePageWithoutOverlap) {
  const auto kv = layout(KvType::f16);
  std::vector<std::byte> page(kv->page_bytes());
  const std::byte* expected = page.data();
  for (std::int64_t layer = 0; layer < kDims.layers; ++layer) {
    for (std::int64_t head = 0; head < kDims.kv_heads; ++head) {
      const KvChunk chunk = kv->chunk(page.data(), layer, head);
      EXPECT_EQ(chunk.k, expected);
      EXPECT_EQ(chunk.v, chunk.k + kKvChunk * 8 * 2);
      EXPECT_EQ(reinterpret_cast<std::byte*>(chunk.k_scale), chunk.v + kKvChunk * 8 * 2);
      EXPECT_EQ(chunk.v_scale, chunk.k_scale + kKvChunk);
      expected = reinterpret_cast<std::byte*>(chunk.v_scale + kKvChunk);
    }
  }
  EXPECT_EQ(expected, page.data() + page.size());
}

TEST(CpuTimeline, GrowsByPagesAsPositionsAreUsed) {
  const auto kv = pages(KvType::f16);
  CpuTimeline timeline(kv);
  EXPECT_EQ(timeline.bytes(), 0u);
  timeline.reserve(1);
  timeline.advance(1);
  EXPECT_EQ(timeline.bytes(), kv->layout().page_bytes());
  timeline.reserve(kKvChunk - 1);
  timeline.advance(kKvChunk - 1);
  EXPECT_EQ(timeline.bytes(), kv->layout().page_bytes());
  timeline.reserve(1);
  EXPECT_EQ(timeline.bytes(), 2 * kv->layout().page_bytes());
  EXPECT_EQ(timeline.position(), kKvChunk);
}

TEST(CpuTimeline, TruncateGivesPagesBack) {
  const auto kv = pages(KvType::f16);
  CpuTimeline timeline(kv);
  timeline.reserve(3 * kKvChunk);
  timeline.advance(3 * kKvChunk);
  timeline.truncate(kKvChunk + 1);
  EXPECT_EQ(timeline.bytes(), 2 * kv->layout().page_bytes());
  timeline.truncate(0);
  EXPECT_EQ(timeline.bytes(), 0u);
  EXPECT_EQ(timeline.position(), 0);
}

TEST(CpuTimeline, ForksShareUntilOneOfThemWrites) {
  CpuTimeline timeline(pages(KvType::f16));
  timeline.reserve(kKvChunk + 10);
  timeline.advance(kKvChunk + 10);
  *timeline.chunk(1, 0, 0).k = std::byte{42};
  const auto fork = timeline.fork();
  auto& copy = static_cast<CpuTimeline&>(*fork);
  EXPECT_EQ(copy.chunk(0, 0, 0).k, timeline.chunk(0, 0, 0).k);
  EXPECT_EQ(copy.chunk(1, 0, 0).k, timeline.chunk(1, 0, 0).k);
  copy.reserve(1);
  EXPECT_EQ(copy.chunk(0, 0, 0).k, timeline.chunk(0, 0, 0).k) << "full pages stay shared";
  ASSERT_NE(copy.chunk(1, 0, 0).k, timeline.chunk(1, 0, 0).k);
  EXPECT_EQ(*copy.chunk(1, 0, 0).k, std::byte{42});
  const std::byte* own = timeline.chunk(1, 0, 0).k;
  timeline.reserve(1);
  EXPECT_EQ(timeline.chunk(1, 0, 0).k, own) << "the other side is alone now and need not copy";
}

TEST(CpuTimeline, TakesPagesThatOthersGaveBack) {
  const auto kv = pages(KvType::f16);
  std::byte* first = nullptr;
  {
    CpuTimeline timeline(kv);
    timeline.reserve(1);
    first = timeline.chunk(0, 0, 0).k;
  }
  CpuTimeline next(kv);
  next.reserve(1);
  EXPECT_EQ(next.chunk(0, 0, 0).k, first);
}

TEST(KvPages, KeepsOnlyAFewPages) {
  const auto kv = pages(KvType::f16);
  std::vector<KvPages::Page> all;
  std::set<std::byte*> before;
  for (int i = 0; i < 20; ++i) before.insert(all.emplace_back(kv->take())->data());
  all.clear();
  // Memory that was given to the system may come back at the same place, but not while it is held.
  std::size_t same = 0;
  for (int i = 0; i < 4; ++i) same += before.count(all.emplace_back(kv->take())->data());
  EXPECT_EQ(same, 4u);
}

}  // namespace
}  // namespace qgen
