#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "device/cpu/step.h"

namespace qgen {

// --- input of products
// ---------------------------------------------------------------------------------------------

/// Rows `rows` of the source, picked and normalised as it asks; copied to `to` only where that changes
/// anything.
const float* StageRunner::gather(const Source& source, Range rows, std::span<float> to) const {
  if (source.norm == kNoWeight && source.pick.empty()) return source.x.data() + rows.begin * source.cols;
  const auto eps = static_cast<float>(model_.plan->norm_eps);
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const std::int64_t from = source.pick.empty() ? r : source.pick[static_cast<std::size_t>(r)];
    kernels().rms_norm(source.x.data() + from * source.cols, vector(source.norm), eps, source.cols,
                       to.data() + (r - rows.begin) * source.cols);
  }
  return to.data();
}

/// Few rows: every member prepares all of them for itself, which is cheaper than a barrier.
StageRunner::Input StageRunner::prepare_alone(const Source& source, const MatmulKernel& kernel) {
  const float* x = gather(source, {0, source.rows}, scratch_.normed);
  std::byte* input = scratch_.prepared.data();
  kernel.prepare(x, source.cols, 0, source.rows, source.cols, input);
  return {input, source.rows, source.cols, &kernel};
}

/// Many rows: each member prepares its part of them for all.
StageRunner::Input StageRunner::prepare_together(const Source& source, const MatmulKernel& kernel) {
  if (shared_input_used_) team_.barrier();
  shared_input_used_ = true;
  const Range mine = share(source.rows, kernel.token_block, member_, team_.size());
  std::byte* input = step_.act.prepared.data();
  if (mine.begin < mine.end) {
    const std::int64_t offset = mine.begin * source.cols;
    const bool copied = source.norm != kNoWeight;
    const float* x =
        gather(source, mine,
               copied ? step_.act.normed.subspan(static_cast<std::size_t>(offset)) : std::span<float>());
    kernel.prepare(x - offset, source.cols, mine.begin, mine.end, source.cols, input);
  }
  team_.barrier();
  return {input, source.rows, source.cols, &kernel};
}

StageRunner::Input StageRunner::prepare(const Source& source, const PackedMatrix& matrix) {
  return prepare(source, matrix, Input());
}

/// `before`: what was prepared of the same source, used again where it suits this matrix.
StageRunner::Input StageRunner::prepare(const Source& source, const PackedMatrix& matrix,
                                        const Input& before) {
  const MatmulKernel& kernel = matrix.kernels->for_tokens(source.rows);
  const bool same_form = before.kernel != nullptr && before.kernel->prepare == kernel.prepare &&
                         before.kernel->token_block == kernel.token_block;
  if (same_form) return {before.data, before.rows, before.cols, &kernel};
  return source.rows <= kFewTokens ? prepare_alone(source, kernel) : prepare_together(source, kernel);
}

/// y[token, row] = x[token] . W[row] for the rows of the range, which begins with a panel; y points at row 0.
void StageRunner::multiply(const Input& input, const PackedMatrix& matrix, Range rows, float* y,
                           std::int64_t y_stride) {
  if (rows.begin >= rows.end) return;
  if (step_.to_pack != nullptr) step_.to_pack->pack_rows(matrix.id, rows, scratch_.unpacked);
  MatmulArgs args;
  args.w = matrix.panel(rows.begin);
  args.rows = rows.end - rows.begin;
  args.cols = input.cols;
  args.input = input.data;
  args.tokens = input.rows;
  args.y = y + rows.begin;
  args.y_stride = y_stride;
  args.scratch = scratch_.matmul.data();
  input.kernel->multiply(args);
}

void StageRunner::add_bias(WeightId bias, Range rows, float* y, std::int64_t y_stride) const {
  if (bias == kNoWeight) return;
  for (std::int64_t t = 0; t < token_count(); ++t) {
    kernels().add(vector(bias) + rows.begin, rows.end - rows.begin, y + t * y_stride + rows.begin);
  }
}

// --- sharing out
// ---------------------------------------------------------------------------------------------------

/// Calls visit(range) for this member's part of [0, count), in ranges that begin with a block. Of few tokens
/// it may take some of another's part, and is not to be called twice without a barrier between; more tokens
/// are shared out evenly, in one range a member.
template <class Visit>
void StageRunner::share_out(std::int64_t count, std::int64_t block, std::size_t block_bytes,
                            const Visit& visit) {
  constexpr std::size_t kLeastBytes = 65536;  // takes longer than it takes to get a piece and begin with it
  if (token_count() > kFewTokens) return visit(share(count, block, member_, team_.size()));
  const auto least = static_cast<std::int64_t>(kLeastBytes / block_bytes);
  sharing_.run(member_, (count + block - 1) / block, std::max<std::int64_t>(least, 1), [&](Range blocks) {
    visit(Range{blocks.begin * block, std::min(count, blocks.end * block)});
  });
}

/// The same for the rows of a matrix, in ranges that begin with a panel.
template <class Visit>
void StageRunner::share_out_rows(const PackedMatrix& matrix, const Visit& visit) {
  share_out(matrix.rows, matrix.kernels->panel_rows, matrix.panel_bytes, visit);
}

// --- stages
// --------------------------------------------------------------------------------------------------------

void StageRunner::operator()(const EmbedStage& stage) {
  const TensorView& table = model_.plan->weight(stage.table);
  const PlanRope& rope = model_.plan->rope;
  const std::int64_t half = dims().head_dim / 2;
  const Range mine = share(token_count(), 1, member_, team_.size());
  for (std::int64_t t = mine.begin; t < mine.end; ++t) {
    const StepToken& token = step_.tokens[static_cast<std::size_t>(t)];
    kernels().widen[static_cast<std::size_t>(table.dtype)](table.row(token.id), dims().width,
                                                           step_.act.h.data() + t * dims().width);
    for (std::int64_t i = 0; i < half; ++i) {
      // The angle is rounded to f32 as the reference implementation rounds it; its sine and cosine are exact
      // then.
      const float angle = static_cast<float>(token.position) * rope.inv_freq[static_cast<std::size_t>(i)];
      const auto at = static_cast<std::size_t>(t * half + i);
      step_.act.cos[at] = static_cast<float>(std::cos(double{angle})) * rope.scale;
      step_.act.sin[at] = static_cast<float>(std::sin(double{angle})) * rope.scale;
    }
  }
}

void StageRunner::operator()(const NormQkvStage& stage) {
  // Whole heads go to one member, a key head together with its value head, so that nobody waits for half a
  // head; as many together as fill panels. A key and its value count as two: whoever gets the first has both.
  const std::int64_t d = dims().head_dim;
  const PackedMatrix& q = matrix(stage.q_proj);
  const std::int64_t height = q.kernels->panel_rows;
  const std::int64_t block = std::lcm(d, height) / d;
  const std::int64_t q_blocks = (dims().heads + block - 1) / block;
  const std::int64_t kv_blocks = (dims().kv_heads + block - 1) / block;
  const auto q_head = [&](std::int64_t i) { return std::min(dims().heads, std::min(q_blocks, i) * block); };
  const auto kv_head = [&](std::int64_t i) {
    return std::min(dims().kv_heads, (std::max(q_blocks, i) - q_blocks + 1) / 2 * block);
  };
  shared_input_used_ = false;
  const Source source{step_.act.h, token_count(), dims().width, stage.norm, {}};
  Input input;
  const std::size_t bytes = q.panel_bytes * static_cast<std::size_t>(block * d / height);
  share_out(q_blocks + 2 * kv_blocks, 1, bytes, [&](Range mine) {
    project_heads(stage, {q_head(mine.begin), q_head(mine.end)}, {kv_head(mine.begin), kv_head(mine.end)},
                  source, input);
  });
}

/// `input`: what was prepared of the source before, and afterwards what is.
void StageRunner::project_heads(const NormQkvStage& stage, Range q_heads, Range kv_heads,
                                const Source& source, Input& input) {
  const std::int64_t d = dims().head_dim;
  const std::int64_t q_stride = dims().heads * d;
  const std::int64_t kv_stride = 2 * dims().kv_heads * d;
  const Range q_rows{q_heads.begin * d, q_heads.end * d};
  const Range kv_rows{kv_heads.begin * d, kv_heads.end * d};
  float* q = step_.act.q.data();
  float* k = step_.act.kv.data();
  float* v = k + dims().kv_heads * d;

  const auto project = [&](WeightId id, WeightId bias, Range rows, float* y, std::int64_t stride) {
    const PackedMatrix& weight = matrix(id);
    input = prepare(source, weight, input);
    multiply(input, weight, rows, y, stride);
    add_bias(bias, rows, y, stride);
  };
  project(stage.q_proj, stage.q_bias, q_rows, q, q_stride);
  project(stage.k_proj, stage.k_bias, kv_rows, k, kv_stride);
  project(stage.v_proj, stage.v_bias, kv_rows, v, kv_stride);

  const KvKernels& kv = kernels().kv[static_cast<std::size_t>(model_.kv_type)];
  for (std::int64_t t = 0; t < token_count(); ++t) {
    const StepToken& token = step_.tokens[static_cast<std::size_t>(t)];
    for (std::int64_t head = q_heads.begin; head < q_heads.end; ++head) {
      finish_head(q + t * q_stride + head * d, t, stage.q_norm);
    }
    for (std::int64_t head = kv_heads.begin; head < kv_heads.end; ++head) {
      float* key = k + t * kv_stride + head * d;
      finish_head(key, t, stage.k_norm);
      kv.store(key, v + t * kv_stride + head * d, d, token.position % kKvChunk,
               token.timeline->chunk(token.position / kKvChunk, stage.layer, head));
    }
  }
}

/// Per-head norm, then rotary embedding, in place.
void StageRunner::finish_head(float* x, std::int64_t token, WeightId norm) const {
  const std::int64_t half = dims().head_dim / 2;
  if (norm != kNoWeight) {
    kernels().rms_norm(x, vector(norm), static_cast<float>(model_.plan->norm_eps), dims().head_dim, x);
  }
  kernels().rope(x, step_.act.cos.data() + token * half, step_.act.sin.data() + token * half, half,
                 model_.plan->rope.pairs == RopePairs::adjacent);
}

void StageRunner::operator()(const ProjectAddStage& stage) {
  shared_input_used_ = false;
  const PackedMatrix& weight = matrix(stage.weight);
  const bool attention = stage.input == ProjectInput::attention;
  const Source source{
      attention ? step_.act.attention : step_.act.gate, token_count(), weight.cols, kNoWeight, {}};
  const Input input = prepare(source, weight);
  float* delta = step_.act.delta.data();
  share_out_rows(weight, [&](Range mine) {
    multiply(input, weight, mine, delta, dims().width);
    add_bias(stage.bias, mine, delta, dims().width);
    for (std::int64_t t = 0; t < token_count(); ++t) {
      const std::int64_t at = t * dims().width + mine.begin;
      kernels().add(delta + at, mine.end - mine.begin, step_.act.h.data() + at);
    }
  });
}

void StageRunner::operator()(const NormGateUpStage& stage) {
  shared_input_used_ = false;
  const PackedMatrix& gate = matrix(stage.gate_proj);
  const PackedMatrix& up = matrix(stage.up_proj);
  const std::int64_t width = dims().feed_forward;
  const Source source{step_.act.h, token_count(), dims().width, stage.norm, {}};
  Input input;
  share_out_rows(gate, [&](Range mine) {
    input = prepare(source, gate, input);
    multiply(input, gate, mine, step_.act.gate.data(), width);
    input = prepare(source, up, input);
    multiply(input, up, mine, step_.act.up.data(), width);
    for (std::int64_t t = 0; t < token_count(); ++t) {
      const std::int64_t at = t * width + mine.begin;
      float* out = step_.act.gate.data() + at;
      kernels().silu_mul(out, step_.act.up.data() + at, mine.end - mine.begin, out);
    }
  });
}

void StageRunner::operator()(const NormHeadStage& stage) {
  if (step_.logit_rows.empty()) return;
  shared_input_used_ = false;
  const PackedMatrix& head = matrix(stage.head);
  const Source source{step_.act.h, std::ssize(step_.logit_rows), dims().width, stage.norm, step_.logit_rows};
  const Input input = prepare(source, head);
  share_out_rows(head, [&](Range mine) {
    multiply(input, head, mine, step_.act.logits.data(), dims().vocab);
    for (std::int64_t row = 0; row < std::ssize(step_.logit_rows); ++row) {
      if (step_.only_best[static_cast<std::size_t>(row)] != 0) find_best(mine, row);
    }
  });
}

/// Joins the arg-max over these ids, banned ones left out, to this member's.
void StageRunner::find_best(Range ids, std::int64_t row) {
  float* logits = step_.act.logits.data() + row * dims().vocab;
  for (const Range& banned : step_.banned) {
    const std::int64_t begin = std::max(banned.begin, ids.begin);
    const std::int64_t end = std::min(banned.end, ids.end);
    if (begin < end) std::fill(logits + begin, logits + end, -std::numeric_limits<float>::infinity());
  }
  BestLogit best = kernels().best(logits + ids.begin, ids.end - ids.begin);
  if (best.index >= 0) best.index += ids.begin;
  if (best.not_finite >= 0) best.not_finite += ids.begin;
  keep_best(step_.best[static_cast<std::size_t>(member_ * std::ssize(step_.logit_rows) + row)], best);
}

void keep_best(BestLogit& kept, const BestLogit& other) noexcept {
  if (other.not_finite >= 0 && (kept.not_finite < 0 || other.not_finite < kept.not_finite)) {
    kept.not_finite = other.not_finite;
  }
  const bool better =
      kept.index < 0 || other.value > kept.value || (other.value == kept.value && other.index < kept.index);
  if (other.index < 0 || !better) return;
  kept.index = other.index;
  kept.value = other.value;
}

}  // namespace qgen
