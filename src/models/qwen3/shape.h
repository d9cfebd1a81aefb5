#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "qgen/plan/plan.h"
#include "qgen/weights/checkpoint.h"
#include "qgen/weights/model_config.h"

namespace qgen {

/// Which layers see only a window of past positions.
enum class WindowRule : std::uint8_t {
  never,
  always,        ///< all of them, where sliding_window is not null
  switched,      ///< with use_sliding_window, those that layer_types or max_window_layers names
  all_switched,  ///< with use_sliding_window, all of them
};

/// What sets the members of the family apart, and what holds where config.json is silent (the defaults of the
/// published configuration classes).
struct FamilyMember {
  std::string_view model_type;
  bool qk_norm;           ///< RMSNorm over each head of q and k
  bool qkv_bias;          ///< q, k and v always have one
  bool attention_bias;    ///< attention_bias of config.json decides about q, k, v and o
  std::int64_t head_dim;  ///< 0: hidden_size / num_attention_heads
  std::int64_t max_position_embeddings;
  WindowRule window;
  bool experts = false;  ///< layers have experts, as far as decoder_sparse_step and mlp_only_layers allow
};

std::span<const FamilyMember> family_members();

/// A config.json with every silence filled in and every contradiction refused.
struct DecoderShape {
  PlanDims dims;
  double norm_eps = 0;
  bool qk_norm = false, qkv_bias = false, o_bias = false, tied = false;
  bool norm_topk_prob = false;
  std::int64_t sparse_step = 0;  ///< layers sparse_step - 1, 2 sparse_step - 1, ... have experts; 0: none
  std::vector<std::int64_t> dense_layers;  ///< of these, those that have none all the same; ascending

  [[nodiscard]] bool has_experts(std::int64_t layer) const;
};

/// `q_proj` is the first layer's, or nullptr: its rows tell the size of a head where config.json does not and
/// the default contradicts them. Throws Error{file} or {unsupported} naming the key, expected and found.
DecoderShape decoder_shape(const ModelConfig& config, const StoredTensor* q_proj);

}  // namespace qgen
