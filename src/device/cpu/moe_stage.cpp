// Mixture of experts: h += sum of p_e * down_e(silu(gate_e x) * up_e x) over the experts that a token
// chooses.
//
// Tokens are grouped by expert, so that a step reads the matrices of each expert that somebody chose once,
// and those of the others not at all. Rows of matrices are shared out as in other stages. Kernels are chosen
// by the tokens of the step, not of the group: what is computed for a token then depends neither on where its
// neighbours go nor on how many they are. Experts are added in ascending order.

#include <algorithm>
#include <cmath>

#include "device/cpu/step.h"

namespace qgen {
namespace {

constexpr std::int64_t kLineBytes = 64;

/// Bytes from one group's input to the next one's.
std::int64_t group_bytes(const MatmulKernel& kernel, std::int64_t tokens, std::int64_t cols) noexcept {
  const auto bytes = static_cast<std::int64_t>(kernel.input_bytes(tokens, cols));
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

std::int64_t blocks_of(const MatmulKernel& kernel, std::int64_t tokens) noexcept {
  return (tokens + kernel.token_block - 1) / kernel.token_block;
}

}  // namespace

struct StageRunner::ExpertProduct {
  const PackedMatrix& matrix;
  const MatmulKernel& kernel;
  Range tokens;  ///< in expert_tokens
  std::byte* input;

  [[nodiscard]] std::int64_t count() const noexcept { return tokens.end - tokens.begin; }
};

const MatmulKernel& router_kernel(const PackedKernels& kernels, std::int64_t tokens) noexcept {
  return tokens <= kFewTokens ? kernels.few : kernels.many;
}

std::size_t expert_input_bytes(const MatmulKernel& kernel, const PlanDims& dims, std::int64_t tokens,
                               std::int64_t cols) noexcept {
  // Input grows evenly from block to block, and each group fills up at most one block and one cache line.
  const std::int64_t rows = tokens * dims.experts_per_token;
  const std::int64_t groups = std::min(dims.experts, rows);
  return kernel.input_bytes(rows + groups * (kernel.token_block - 1), cols) +
         static_cast<std::size_t>(groups * kLineBytes);
}

void StageRunner::operator()(const MoeStage& stage) {
  const float* x = route(stage);
  const Range mine = share(token_count(), 1, member_, team_.size());
  for (std::int64_t t = mine.begin; t < mine.end; ++t) choose_experts(stage, t);
  team_.barrier();
  group_tokens();

  prepare_experts(stage.gate_proj, x, true);
  team_.barrier();
  multiply_experts(stage.gate_proj, step_.act.gate.data());
  const bool alike = std::ranges::equal(
      stage.gate_proj, stage.up_proj, {}, [&](WeightId id) { return matrix(id).kernels; },
      [&](WeightId id) { return matrix(id).kernels; });
  if (!alike) {
    team_.barrier();
    prepare_experts(stage.up_proj, x, true);
    team_.barrier();
  }
  multiply_experts(stage.up_proj, step_.act.up.data());
  activate_experts(matrix(stage.gate_proj.front()));
  team_.barrier();

  prepare_experts(stage.down_proj, step_.act.gate.data(), false);
  team_.barrier();
  multiply_and_add_experts(stage.down_proj);
}

/// Leaves the router's logits of all tokens complete; returns the normalised rows [T, D].
const float* StageRunner::route(const MoeStage& stage) {
  shared_input_used_ = false;
  const PackedMatrix& router = matrix(stage.router);
  const bool few = token_count() <= kFewTokens;
  const Source source{step_.act.h, token_count(), dims().width, stage.norm, {}};
  const MatmulKernel& kernel = router_kernel(*router.kernels, token_count());
  const Input input = few ? prepare_alone(source, kernel) : prepare_together(source, kernel);
  const Range mine = share(router.rows, router.kernels->panel_rows, member_, team_.size());
  multiply(input, router, mine, step_.act.router.data(), dims().experts);
  team_.barrier();
  return few ? scratch_.normed.data() : step_.act.normed.data();
}

/// Softmax, then the k largest, of equal ones the lowest.
void StageRunner::choose_experts(const MoeStage& stage, std::int64_t token) const {
  constexpr float kTaken = -1;
  const auto p = step_.act.router.subspan(static_cast<std::size_t>(token * dims().experts),
                                          static_cast<std::size_t>(dims().experts));
  const auto k = static_cast<std::size_t>(dims().experts_per_token);
  const auto chosen = step_.act.chosen.subspan(static_cast<std::size_t>(token) * k, k);
  const float most = *std::ranges::max_element(p);
  float all = 0, kept = 0;
  for (float& value : p) {
    value = std::exp(value - most);
    all += value;
  }
  for (ExpertChoice& choice : chosen) {
    choice.expert = -1;
    for (std::int64_t e = 0; e < dims().experts; ++e) {
      const float value = p[static_cast<std::size_t>(e)];
      if (value == kTaken) continue;
      // Of NaNs the first is as good as any: all factors are NaN then.
      if (choice.expert >= 0 && !(value > choice.factor)) continue;
      choice = {e, value};
    }
    p[static_cast<std::size_t>(choice.expert)] = kTaken;
    choice.factor /= all;  // NaN where any number is: damage is noticed whoever is chosen
    kept += choice.factor;
  }
  for (ExpertChoice& choice : chosen) choice.factor /= stage.norm_topk_prob ? kept : 1;
}

/// Sorts the step's choices by expert; every member for itself, which is cheaper than a barrier.
void StageRunner::group_tokens() const {
  const auto ends = scratch_.expert_ends;
  std::ranges::fill(ends, 0);
  for (const ExpertChoice& choice : step_.act.chosen) ++ends[static_cast<std::size_t>(choice.expert)];
  std::int64_t begin = 0;
  for (std::int64_t& end : ends) {
    const std::int64_t count = end;
    end = begin;
    begin += count;
  }
  // Each moves on from where its tokens begin to where they end.
  for (std::size_t i = 0; i < step_.act.chosen.size(); ++i) {
    const ExpertChoice& choice = step_.act.chosen[i];
    const std::int64_t place = ends[static_cast<std::size_t>(choice.expert)]++;
    scratch_.expert_tokens[static_cast<std::size_t>(place)] = {
        static_cast<std::int64_t>(i) / dims().experts_per_token, choice.factor};
  }
}

/// Calls visit(product) for the experts that somebody chose, in ascending order.
template <class Visit>
void StageRunner::for_each_expert(const std::vector<WeightId>& matrices, const Visit& visit) const {
  std::byte* input = step_.act.prepared.data();
  std::int64_t begin = 0;
  for (std::size_t e = 0; e < matrices.size(); ++e) {
    const Range tokens{begin, scratch_.expert_ends[e]};
    begin = tokens.end;
    if (tokens.begin == tokens.end) continue;
    const PackedMatrix& weight = matrix(matrices[e]);
    const ExpertProduct product{weight, weight.kernels->for_tokens(token_count()), tokens, input};
    visit(product);
    input += group_bytes(product.kernel, product.count(), weight.cols);
  }
}

/// Prepares this member's part of the inputs of all experts: rows of x[T, cols] as they were dealt out, or
/// else x[T * k, cols] in that order already.
void StageRunner::prepare_experts(const std::vector<WeightId>& matrices, const float* x, bool by_token) {
  std::int64_t blocks = 0;
  for_each_expert(matrices, [&](const ExpertProduct& p) { blocks += blocks_of(p.kernel, p.count()); });
  const Range mine = share(blocks, 1, member_, team_.size());
  std::int64_t block = 0;
  for_each_expert(matrices, [&](const ExpertProduct& p) {
    const std::int64_t size = p.kernel.token_block;
    for (std::int64_t first = 0; first < p.count(); first += size, ++block) {
      if (block < mine.begin || block >= mine.end) continue;
      const Range rows{first, std::min(first + size, p.count())};
      const float* from = by_token ? gather_tokens(p, rows, x) : x + (p.tokens.begin + first) * p.matrix.cols;
      p.kernel.prepare(from - first * p.matrix.cols, p.matrix.cols, rows.begin, rows.end, p.matrix.cols,
                       p.input);
    }
  });
}

/// Rows of x[T, cols] for some tokens of a group.
const float* StageRunner::gather_tokens(const ExpertProduct& product, Range rows, const float* x) const {
  const std::int64_t cols = product.matrix.cols;
  float* to = scratch_.gathered.data();
  for (std::int64_t r = rows.begin; r < rows.end; ++r) {
    const auto place = static_cast<std::size_t>(product.tokens.begin + r);
    std::copy_n(x + scratch_.expert_tokens[place].token * cols, cols, to + (r - rows.begin) * cols);
  }
  return scratch_.gathered.data();
}

/// This member's rows of one expert's product, for the tokens of its group.
Range StageRunner::multiply_expert(const ExpertProduct& product, float* y) {
  const PackedMatrix& weight = product.matrix;
  const Range mine = share(weight.rows, weight.kernels->panel_rows, member_, team_.size());
  multiply({product.input, product.count(), weight.cols, &product.kernel}, weight, mine, y, weight.rows);
  return mine;
}

/// y[T * k, M], by expert.
void StageRunner::multiply_experts(const std::vector<WeightId>& matrices, float* y) {
  for_each_expert(matrices, [&](const ExpertProduct& product) {
    multiply_expert(product, y + product.tokens.begin * product.matrix.rows);
  });
}

void StageRunner::activate_experts(const PackedMatrix& gate) const {
  const Range mine = share(gate.rows, gate.kernels->panel_rows, member_, team_.size());
  for (std::int64_t row = 0; row < std::ssize(step_.act.chosen); ++row) {
    const std::int64_t at = row * gate.rows + mine.begin;
    float* out = step_.act.gate.data() + at;
    kernels().silu_mul(out, step_.act.up.data() + at, mine.end - mine.begin, out);
  }
}

void StageRunner::multiply_and_add_experts(const std::vector<WeightId>& matrices) {
  for_each_expert(matrices, [&](const ExpertProduct& product) {
    const Range mine = multiply_expert(product, step_.act.delta.data());
    for (std::int64_t i = 0; i < product.count(); ++i) {
      const ExpertToken& to = scratch_.expert_tokens[static_cast<std::size_t>(product.tokens.begin + i)];
      float* delta = step_.act.delta.data() + i * dims().width + mine.begin;
      kernels().scale(delta, to.factor, mine.end - mine.begin, delta);
      kernels().add(delta, mine.end - mine.begin, step_.act.h.data() + to.token * dims().width + mine.begin);
    }
  });
}

}  // namespace qgen
