// softmax(q K^T / sqrt(d)) V, query heads grouped over key/value heads, causal, for the tokens of one step.
//
// A unit of work is one tile of neighbouring tokens and one key/value head, so that each chunk of keys and
// values is read once for all query heads that share it. Chunks are merged in order, whoever computes them.

#include <algorithm>
#include <array>
#include <cmath>

#include "device/cpu/step.h"

namespace qgen {
namespace {

/// Working memory of a unit, carved out of its thread's scratch.
struct UnitMemory {
  UnitMemory(std::span<float> memory, std::int64_t d)
      : scores(memory.data()),
        q(scores + kAttendScratch),
        out(q + kAttendQueries * d),
        part(out + kAttendQueries * d),
        max(part + kAttendQueries * d),
        sum(max + kAttendQueries),
        part_max(sum + kAttendQueries),
        part_sum(part_max + kAttendQueries) {}

  float* scores;
  float* q;                    // [kAttendQueries, d], scaled
  float *out, *part;           // [kAttendQueries, d]: all chunks so far, the chunk at hand
  float *max, *sum;            // [kAttendQueries] of out
  float *part_max, *part_sum;  // [kAttendQueries] of part
};

}  // namespace

std::int64_t attend_scratch_floats(std::int64_t head_dim) noexcept {
  return kAttendScratch + kAttendQueries * (3 * head_dim + 4);
}

void StageRunner::operator()(const AttendStage& stage) {
  // Later tiles see more positions: dealing them out in turn keeps members even.
  const std::int64_t units = std::ssize(step_.tiles) * dims().kv_heads;
  for (std::int64_t unit = member_; unit < units; unit += team_.size()) {
    const QueryTile& tile = step_.tiles[static_cast<std::size_t>(unit / dims().kv_heads)];
    const std::int64_t kv_head = unit % dims().kv_heads;
    const std::int64_t group = dims().heads / dims().kv_heads;
    // A large group is taken in slices, so that a call never has more queries than kernels allow.
    const std::int64_t slice = std::min(group, kAttendQueries / tile.count);
    for (std::int64_t g = 0; g < group; g += slice) {
      const std::int64_t first = kv_head * group + g;
      attend_tile(tile, stage.layer, kv_head, {first, first + std::min(slice, group - g)});
    }
  }
}

/// The query heads `heads`, which share one key/value head, of a tile's tokens.
void StageRunner::attend_tile(const QueryTile& tile, std::int64_t layer, std::int64_t kv_head, Range heads) {
  const std::int64_t d = dims().head_dim;
  const std::int64_t per_token = heads.end - heads.begin;
  const std::int64_t queries = tile.count * per_token;
  const auto scale = static_cast<float>(1.0 / std::sqrt(static_cast<double>(d)));
  const UnitMemory memory(scratch_.attend, d);
  const auto head_of = [&](std::int64_t i, float* base) {
    return base + ((tile.first + i / per_token) * dims().heads + heads.begin + i % per_token) * d;
  };
  for (std::int64_t i = 0; i < queries; ++i) {
    kernels().scale(head_of(i, step_.act.q.data()), scale, d, memory.q + i * d);
  }

  const StepToken& first = step_.tokens[static_cast<std::size_t>(tile.first)];
  std::array<std::int32_t, kAttendQueries> visible{};
  AttendArgs args{memory.q,   d, queries,    d,          {},           visible.data(),
                  memory.out, d, memory.max, memory.sum, memory.scores};
  for (std::int64_t c = 0; c <= (first.position + tile.count - 1) / kKvChunk; ++c) {
    for (std::int64_t i = 0; i < queries; ++i) {
      const std::int64_t seen = first.position + i / per_token + 1 - c * kKvChunk;
      visible[static_cast<std::size_t>(i)] =
          static_cast<std::int32_t>(std::clamp<std::int64_t>(seen, 0, kKvChunk));
    }
    args.chunk = first.timeline->chunk(c, layer, kv_head);
    kernels().kv[static_cast<std::size_t>(model_.kv_type)].attend(args);
    for (std::int64_t i = 0; c > 0 && i < queries; ++i) {
      kernels().merge(memory.part + i * d, memory.part_max[i], memory.part_sum[i], d, memory.out + i * d,
                      memory.max + i, memory.sum + i);
    }
    args.out = memory.part;
    args.max = memory.part_max;
    args.sum = memory.part_sum;
  }
  for (std::int64_t i = 0; i < queries; ++i) {
    kernels().scale(memory.out + i * d, 1.0f / memory.sum[i], d, head_of(i, step_.act.attention.data()));
  }
}

}  // namespace qgen
