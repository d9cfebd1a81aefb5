#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "qgen/tensor/tensor_view.h"

namespace qgen {

// Letters used in shape comments here and wherever a plan is run:
//   T tokens in the step, D width of the residual, H query heads, K key/value heads, d size of a head, F
//   width of the feed-forward part, V rows of the output matrix, L layers, E experts, k experts that a token
//   goes to, M width of an expert.

/// Index into Plan::weights.
using WeightId = std::int32_t;
inline constexpr WeightId kNoWeight = -1;

/// A weight and the name by which its file knows it.
struct PlanWeight {
  std::string name;
  TensorView view;
};

struct PlanDims {
  std::int64_t layers = 0;        ///< L
  std::int64_t width = 0;         ///< D, hidden_size
  std::int64_t heads = 0;         ///< H, num_attention_heads
  std::int64_t kv_heads = 0;      ///< K, num_key_value_heads; divides H
  std::int64_t head_dim = 0;      ///< d, even
  std::int64_t feed_forward = 0;  ///< F, intermediate_size; 0 where every layer has experts
  std::int64_t vocab = 0;         ///< V, vocab_size
  std::int64_t context = 0;       ///< positions the model was made for
  // The rest is 0 where no layer has experts.
  std::int64_t experts = 0;            ///< E, num_experts
  std::int64_t experts_per_token = 0;  ///< k, num_experts_per_tok; 1..E
  std::int64_t expert_width = 0;       ///< M, moe_intermediate_size
};

/// Which elements of a head are rotated together: (i, i + d/2) or (2i, 2i + 1).
enum class RopePairs : std::uint8_t { half_split, adjacent };

/// Rotary position embedding (Su et al. 2021): pair i at position p turns by p * inv_freq[i]; cosine and sine
/// are then multiplied by `scale` (YaRN's attention factor, else 1).
struct PlanRope {
  RopePairs pairs = RopePairs::half_split;
  std::vector<float> inv_freq;  ///< [d/2]
  float scale = 1;
};

/// tokens[T] -> h[T, D]: h[t] = table[tokens[t]].
struct EmbedStage {
  WeightId table = kNoWeight;  ///< [V, D]
};

/// h[T, D] -> q[T, H*d], and k, v appended to the cache of `layer`. x = RMSNorm(h) * norm; q, k, v = x W^T (+
/// bias); q and k: RMSNorm over each head where q_norm and k_norm are given, then RoPE.
struct NormQkvStage {
  std::int64_t layer = 0;
  WeightId norm = kNoWeight;                                            ///< [D]
  WeightId q_proj = kNoWeight, k_proj = kNoWeight, v_proj = kNoWeight;  ///< [H*d, D], [K*d, D], [K*d, D]
  WeightId q_bias = kNoWeight, k_bias = kNoWeight, v_bias = kNoWeight;  ///< [H*d], [K*d], [K*d] or none
  WeightId q_norm = kNoWeight, k_norm = kNoWeight;                      ///< [d] or none
};

/// q[T, H*d] -> a[T, H*d]: softmax(q K^T / sqrt(d)) V over positions up to each token's own; query head i
/// reads key/value head i / (H/K).
struct AttendStage {
  std::int64_t layer = 0;
};

/// Where ProjectAdd reads its input from.
enum class ProjectInput : std::uint8_t { attention, feed_forward };

/// h[T, D] += x W^T (+ bias), x the output of Attend or of NormGateUp.
struct ProjectAddStage {
  std::int64_t layer = 0;
  ProjectInput input = ProjectInput::attention;
  WeightId weight = kNoWeight;  ///< [D, H*d] or [D, F]
  WeightId bias = kNoWeight;    ///< [D] or none
};

/// h[T, D] -> u[T, F]: x = RMSNorm(h) * norm; u = silu(x gate^T) * (x up^T) (Shazeer 2020).
struct NormGateUpStage {
  std::int64_t layer = 0;
  WeightId norm = kNoWeight;                            ///< [D]
  WeightId gate_proj = kNoWeight, up_proj = kNoWeight;  ///< [F, D]
};

/// h[T, D] += sum of p_e * y_e over the k chosen experts e, in place of NormGateUp and ProjectAdd (mixture of
/// experts, Shazeer et al. 2017). x = RMSNorm(h) * norm; p = softmax(x router^T) over all E; chosen are the k
/// experts of largest p, of equal ones the lowest; y_e = (silu(x gate_e^T) * (x up_e^T)) down_e^T. Devices
/// keep the router's numbers as the file has them and x for it in f32 at least: who is chosen must not depend
/// on how weights are held.
struct MoeStage {
  std::int64_t layer = 0;
  WeightId norm = kNoWeight;                            ///< [D]
  WeightId router = kNoWeight;                          ///< [E, D]
  std::vector<WeightId> gate_proj, up_proj, down_proj;  ///< E each: [M, D], [M, D], [D, M]
  bool norm_topk_prob = false;                          ///< divide the k chosen p by their sum
};

/// h[T, D] -> logits[T, V]: RMSNorm(h) * norm, times head^T.
struct NormHeadStage {
  WeightId norm = kNoWeight;  ///< [D]
  WeightId head = kNoWeight;  ///< [V, D]; the embedding table itself where the two are tied
};

using Stage = std::variant<EmbedStage, NormQkvStage, AttendStage, ProjectAddStage, NormGateUpStage, MoeStage,
                           NormHeadStage>;

/// Complete description of one decoder step as data: what a device needs to know of a model, and all of it.
struct Plan {
  PlanDims dims;
  PlanRope rope;
  double norm_eps = 0;
  std::vector<PlanWeight> weights;
  std::vector<Stage> stages;

  [[nodiscard]] const TensorView& weight(WeightId id) const {
    return weights[static_cast<std::size_t>(id)].view;
  }
};

/// The matrices that a stage multiplies by, in the order in which it reads them: a router before its experts.
std::vector<WeightId> matrices_of(const Stage& stage);

/// "norm_qkv of layer 3" and the like, for messages and tests.
std::string stage_name(const Stage& stage);

/// Proves that `plan` can be run: every dimension positive, every weight id in range, every shape as the
/// stage says, every weight of a weight type, one Embed first, one NormHead last, each layer's stages (five,
/// or four where it has experts) once and in order. Throws Error{file} naming weight, expected and found
/// otherwise. Devices may assume it.
void check_plan(const Plan& plan);

}  // namespace qgen
