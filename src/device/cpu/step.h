#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "device/cpu/block_sharing.h"
#include "device/cpu/kv_cache.h"
#include "device/cpu/packed_weights.h"
#include "device/cpu/share.h"
#include "device/cpu/thread_team.h"
#include "device/cpu/workspace.h"
#include "qgen/kernels/kernel_table.h"
#include "qgen/plan/plan.h"

namespace qgen {

/// One token of a step.
struct StepToken {
  CpuTimeline* timeline = nullptr;
  std::int64_t position = 0;
  TokenId id = 0;
};

/// Queries that attend together: some neighbouring tokens of one timeline times some query heads that share a
/// key/value head.
struct AttendUnit {
  std::int64_t first = 0;   ///< index of the first token in the step
  std::int64_t tokens = 0;  ///< tokens * (heads.end - heads.begin) <= kAttendQueries
  std::int64_t kv_head = 0;
  Range heads;
  std::int64_t chunks = 0;      ///< chunks of the cache that the last token sees
  std::int64_t first_part = 0;  ///< index of its first chunk among those of all units
};

/// What the threads share while they run one step.
struct Step {
  std::span<const StepToken> tokens;  ///< [T]
  std::span<const AttendUnit> units;
  /// [units], where units are too few to go around, else empty: chunks of each that are done, counted over
  /// all layers. Whoever does a unit's last one merges them.
  std::span<std::atomic<std::int64_t>> chunks_done;
  std::span<const std::int64_t> logit_rows;  ///< tokens whose logits are computed, ascending
  std::span<const std::uint8_t> only_best;   ///< [logit_rows]: the row is needed for its arg-max alone
  std::span<const Range> banned;             ///< ids that are no candidates for the arg-max
  std::span<BestLogit> best;                 ///< [members, logit_rows]: each member's part of the arg-max
  Activations act;
  PackedWeights* to_pack = nullptr;  ///< or: rows are to be packed before they are multiplied by
};

/// Everything that stays the same from step to step.
struct CpuModel {
  const Plan* plan = nullptr;
  const KernelTable* kernels = nullptr;
  PackedWeights weights;
  KvType kv_type = KvType::f16;
  std::vector<std::vector<float>>
      vectors;  ///< norms and biases widened to f32, by WeightId; empty for packed matrices
};

/// Attention of some queries to some chunks, not yet divided by `sum`; see AttendArgs.
struct AttendPart {
  float* out = nullptr;                  ///< [queries, d]
  float *max = nullptr, *sum = nullptr;  ///< [queries]
};
/// Floats of one AttendPart.
std::int64_t attend_part_floats(std::int64_t queries, std::int64_t head_dim) noexcept;
/// The most queries that any of the units has.
std::int64_t most_queries(std::span<const AttendUnit> units) noexcept;
/// Floats of ThreadScratch::attend.
std::int64_t attend_scratch_floats(std::int64_t head_dim) noexcept;

/// The kernel for a router of a step of that many tokens: one that leaves inputs in f32.
const MatmulKernel& router_kernel(const PackedKernels& kernels, std::int64_t tokens) noexcept;
/// The most bytes that the inputs of products of `kernel` with experts' matrices of `cols` columns take,
/// whichever experts the tokens of a step go to.
std::size_t expert_input_bytes(const MatmulKernel& kernel, const PlanDims& dims, std::int64_t tokens,
                               std::int64_t cols) noexcept;

/// Keeps the better of two parts of an arg-max: of equal logits the lowest id.
void keep_best(BestLogit& kept, const BestLogit& other) noexcept;

/// The stages of a step as one member of the team runs them. Each leaves its output complete only after a
/// barrier.
class StageRunner {
 public:
  StageRunner(const CpuModel& model, const Step& step, ThreadTeam& team, BlockSharing& sharing,
              ThreadScratch& scratch, int member)
      : model_(model), step_(step), team_(team), sharing_(sharing), scratch_(scratch), member_(member) {}

  void operator()(const EmbedStage& stage);
  void operator()(const NormQkvStage& stage);
  void operator()(const AttendStage& stage);
  void operator()(const ProjectAddStage& stage);
  void operator()(const NormGateUpStage& stage);
  void operator()(const MoeStage& stage);
  void operator()(const NormHeadStage& stage);

 private:
  /// Activations made ready for multiplication by weights of one type.
  struct Input {
    const std::byte* data = nullptr;
    std::int64_t rows = 0, cols = 0;
    const MatmulKernel* kernel = nullptr;
  };
  /// Rows of X that become the input of a product; normalised first where `norm` is given.
  struct Source {
    std::span<const float> x;  ///< [rows, cols]
    std::int64_t rows = 0, cols = 0;
    WeightId norm = kNoWeight;
    std::span<const std::int64_t> pick;  ///< rows to take, or empty: all
  };

  [[nodiscard]] const KernelTable& kernels() const noexcept { return *model_.kernels; }
  [[nodiscard]] const PlanDims& dims() const noexcept { return model_.plan->dims; }
  [[nodiscard]] const float* vector(WeightId id) const noexcept {
    return model_.vectors[static_cast<std::size_t>(id)].data();
  }
  [[nodiscard]] const PackedMatrix& matrix(WeightId id) const noexcept { return model_.weights[id]; }
  [[nodiscard]] std::int64_t token_count() const noexcept { return std::ssize(step_.tokens); }

  Input prepare(const Source& source, const PackedMatrix& matrix);
  Input prepare(const Source& source, const PackedMatrix& matrix, const Input& before);
  Input prepare_alone(const Source& source, const MatmulKernel& kernel);
  Input prepare_together(const Source& source, const MatmulKernel& kernel);
  const float* gather(const Source& source, Range rows, std::span<float> to) const;
  void multiply(const Input& input, const PackedMatrix& matrix, Range rows, float* y, std::int64_t y_stride);
  void add_bias(WeightId bias, Range rows, float* y, std::int64_t y_stride) const;
  void finish_head(float* x, std::int64_t token, WeightId norm) const;
  template <class Visit>
  void share_out(std::int64_t count, std::int64_t block, std::size_t block_bytes, const Visit& visit);
  template <class Visit>
  void share_out_rows(const PackedMatrix& matrix, const Visit& visit);
  void project_heads(const NormQkvStage& stage, Range q_heads, Range kv_heads, const Source& source,
                     Input& input);
  void attend_alone(const AttendUnit& unit, std::int64_t layer);
  void attend_parts(std::int64_t layer);
  void load_queries(const AttendUnit& unit, float* q) const;
  void attend_chunk(const AttendUnit& unit, std::int64_t layer, std::int64_t chunk, const AttendPart& part);
  void merge_part(const AttendUnit& unit, const AttendPart& part, const AttendPart& whole) const;
  void store_attention(const AttendUnit& unit, const AttendPart& whole) const;
  /// The product of some tokens by a matrix of one expert.
  struct ExpertProduct;
  const float* route(const MoeStage& stage);
  void choose_experts(const MoeStage& stage, std::int64_t token) const;
  void group_tokens() const;
  template <class Visit>
  void for_each_expert(const std::vector<WeightId>& matrices, const Visit& visit) const;
  void prepare_experts(const std::vector<WeightId>& matrices, const float* x, bool by_token);
  const float* gather_tokens(const ExpertProduct& product, Range rows, const float* x) const;
  Range multiply_expert(const ExpertProduct& product, float* y);
  void activate_experts(const PackedMatrix& gate) const;
  void multiply_experts(const std::vector<WeightId>& matrices, float* y);
  void multiply_and_add_experts(const std::vector<WeightId>& matrices);
  void find_best(Range ids, std::int64_t row);

  const CpuModel& model_;
  const Step& step_;
  ThreadTeam& team_;
  BlockSharing& sharing_;
  ThreadScratch& scratch_;
  int member_;
  bool shared_input_used_ = false;  // a product of this stage may still read act.prepared
};

}  // namespace qgen
