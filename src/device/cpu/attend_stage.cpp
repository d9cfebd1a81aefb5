// softmax(q K^T / sqrt(d)) V, query heads grouped over key/value heads, causal, for the tokens of one step.
//
// Each chunk of keys and values is read once for all queries of a unit. A unit's chunks are merged in order,
// whoever computes them: one member, or several where there are fewer units than would keep all busy.

#include <algorithm>
#include <array>
#include <cmath>

#include "device/cpu/step.h"

namespace qgen {
namespace {

AttendPart part_at(float* memory, std::int64_t queries, std::int64_t d) noexcept {
  float* max = memory + queries * d;
  return {memory, max, max + queries};
}

/// A thread's working memory.
struct AttendMemory {
  AttendMemory(std::span<float> memory, std::int64_t d)
      : scores(memory.data()),
        q(scores + attend_scratch(d)),
        whole(part_at(q + kAttendQueries * d, kAttendQueries, d)),
        part(part_at(q + kAttendQueries * d + attend_part_floats(kAttendQueries, d), kAttendQueries, d)) {}

  float* scores;
  float* q;  // [kAttendQueries, d], scaled
  AttendPart whole, part;
};

}  // namespace

std::int64_t attend_part_floats(std::int64_t queries, std::int64_t head_dim) noexcept {
  return queries * (head_dim + 2);
}

std::int64_t attend_scratch_floats(std::int64_t head_dim) noexcept {
  return attend_scratch(head_dim) + kAttendQueries * head_dim +
         2 * attend_part_floats(kAttendQueries, head_dim);
}

std::int64_t most_queries(std::span<const AttendUnit> units) noexcept {
  std::int64_t most = 0;
  for (const AttendUnit& unit : units)
    most = std::max(most, unit.tokens * (unit.heads.end - unit.heads.begin));
  return most;
}

void StageRunner::operator()(const AttendStage& stage) {
  if (!step_.chunks_done.empty()) return attend_parts(stage.layer);
  // Later tokens see more positions: dealing units out in turn keeps members even.
  for (std::int64_t i = member_; i < std::ssize(step_.units); i += team_.size()) {
    attend_alone(step_.units[static_cast<std::size_t>(i)], stage.layer);
  }
}

void StageRunner::attend_alone(const AttendUnit& unit, std::int64_t layer) {
  const AttendMemory memory(scratch_.attend, dims().head_dim);
  load_queries(unit, memory.q);
  attend_chunk(unit, layer, 0, memory.whole);
  for (std::int64_t chunk = 1; chunk < unit.chunks; ++chunk) {
    attend_chunk(unit, layer, chunk, memory.part);
    merge_part(unit, memory.part, memory.whole);
  }
  store_attention(unit, memory.whole);
}

/// This member's share of all chunks of all units.
void StageRunner::attend_parts(std::int64_t layer) {
  const std::int64_t d = dims().head_dim;
  const AttendMemory memory(scratch_.attend, d);
  const std::int64_t queries = most_queries(step_.units);
  const Range mine =
      share(step_.units.back().first_part + step_.units.back().chunks, 1, member_, team_.size());
  for (std::size_t u = 0; u < step_.units.size(); ++u) {
    const AttendUnit& unit = step_.units[u];
    const auto part_of = [&](std::int64_t chunk) {
      return part_at(step_.act.parts.data() + (unit.first_part + chunk) * attend_part_floats(queries, d),
                     queries, d);
    };
    const std::int64_t begin = std::max<std::int64_t>(mine.begin - unit.first_part, 0);
    const std::int64_t end = std::min(mine.end - unit.first_part, unit.chunks);
    if (begin >= end) continue;
    load_queries(unit, memory.q);
    for (std::int64_t chunk = begin; chunk < end; ++chunk) attend_chunk(unit, layer, chunk, part_of(chunk));
    const std::int64_t done =
        step_.chunks_done[u].fetch_add(end - begin, std::memory_order_acq_rel) + end - begin;
    if (done != (layer + 1) * unit.chunks) continue;
    const AttendPart whole = part_of(0);
    for (std::int64_t chunk = 1; chunk < unit.chunks; ++chunk) merge_part(unit, part_of(chunk), whole);
    store_attention(unit, whole);
  }
}

/// q[tokens * heads, d], multiplied by 1/sqrt(d).
void StageRunner::load_queries(const AttendUnit& unit, float* q) const {
  const std::int64_t d = dims().head_dim;
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(d)));
  for (std::int64_t t = unit.first; t < unit.first + unit.tokens; ++t) {
    for (std::int64_t head = unit.heads.begin; head < unit.heads.end; ++head, q += d) {
      kernels().scale(step_.act.q.data() + (t * dims().heads + head) * d, scale, d, q);
    }
  }
}

void StageRunner::attend_chunk(const AttendUnit& unit, std::int64_t layer, std::int64_t chunk,
                               const AttendPart& part) {
  const std::int64_t d = dims().head_dim;
  const AttendMemory memory(scratch_.attend, d);
  const std::int64_t heads = unit.heads.end - unit.heads.begin;
  const StepToken& first = step_.tokens[static_cast<std::size_t>(unit.first)];
  std::array<std::int32_t, kAttendQueries> visible{};
  for (std::int64_t i = 0; i < unit.tokens * heads; ++i) {
    const std::int64_t seen = first.position + i / heads + 1 - chunk * kKvChunk;
    visible[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>(std::clamp<std::int64_t>(seen, 0, kKvChunk));
  }
  AttendArgs args;
  args.q = memory.q;
  args.q_stride = d;
  args.queries = unit.tokens * heads;
  args.head_dim = d;
  args.chunk = first.timeline->chunk(chunk, layer, unit.kv_head);
  args.visible = visible.data();
  args.out = part.out;
  args.out_stride = d;
  args.max = part.max;
  args.sum = part.sum;
  args.scratch = memory.scores;
  if (chunk + 1 < unit.chunks) args.next = first.timeline->chunk(chunk + 1, layer, unit.kv_head).k;
  const KvKernels& kv = kernels().kv[static_cast<std::size_t>(model_.kv_type)];
  // Where products by the weights keep inputs exact, so does attention.
  const PackedType type = model_.weights.type();
  const bool exact = type == PackedType::f32 || type == PackedType::f16 || token_count() <= kManyTokens;
  (exact ? kv.attend : kv.attend_bulk)(args);
}

void StageRunner::merge_part(const AttendUnit& unit, const AttendPart& part, const AttendPart& whole) const {
  const std::int64_t d = dims().head_dim;
  for (std::int64_t i = 0; i < unit.tokens * (unit.heads.end - unit.heads.begin); ++i) {
    kernels().merge(part.out + i * d, part.max[i], part.sum[i], d, whole.out + i * d, whole.max + i,
                    whole.sum + i);
  }
}

void StageRunner::store_attention(const AttendUnit& unit, const AttendPart& whole) const {
  const std::int64_t d = dims().head_dim;
  std::int64_t i = 0;
  for (std::int64_t t = unit.first; t < unit.first + unit.tokens; ++t) {
    for (std::int64_t head = unit.heads.begin; head < unit.heads.end; ++head, ++i) {
      kernels().scale(whole.out + i * d, 1.0f / whole.sum[i], d,
                      step_.act.attention.data() + (t * dims().heads + head) * d);
    }
  }
}

}  // namespace qgen
