#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/base/bytes.h"

namespace qgen {

/// Rotary position settings of config.json. Both dialects are read alike ("rope_scaling" with a "rope_theta"
/// beside it, or "rope_parameters"; "type" or "rope_type"); one key stated twice must have one value.
struct RopeConfig {
  std::string type = "default";  ///< any name: the model refuses those it cannot compute
  double theta = 0;              ///< 0: the file does not say
  std::optional<double> factor, attention_factor;
  std::optional<double> beta_fast, beta_slow, mscale, mscale_all_dim;
  std::optional<double> low_freq_factor, high_freq_factor;
  bool truncate = true;
  std::int64_t original_max_position_embeddings = 0;  ///< 0: the file does not say
  /// [head_dim / 2] or none: what each pair's frequency is divided by, where a file has them ready made
  /// (rope_freqs of GGUF) rather than the settings from which they follow.
  std::vector<float> frequency_divisors;
  /// Rows of q_proj and k_proj are in the order in which pairs are neighbours.
  bool adjacent_pairs = false;
};

/// config.json of a decoder, with the checkpoint's own names. Zero, empty or nothing means that the file does
/// not say (null counts as not said, except where noted); what then holds is for the model's family to know.
struct ModelConfig {
  std::string source;  ///< for messages, already escaped
  std::string model_type;
  std::vector<std::string> architectures;
  std::string hidden_act = "silu";
  std::int64_t hidden_size = 0;
  std::int64_t num_hidden_layers = 0;
  std::int64_t num_attention_heads = 0;
  std::int64_t num_key_value_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t intermediate_size = 0;
  std::int64_t vocab_size = 0;
  std::int64_t max_position_embeddings = 0;
  double rms_norm_eps = 0;
  double partial_rotary_factor = 1;
  std::optional<bool> tie_word_embeddings;
  std::optional<bool> attention_bias;
  bool mlp_bias = false;
  std::optional<std::int64_t> sliding_window;  ///< positions; 0: the file says null, that is, none
  std::optional<bool> use_sliding_window;
  std::optional<std::int64_t> max_window_layers;
  std::vector<std::string> layer_types;
  RopeConfig rope;
  std::int64_t num_experts = 0;  ///< also num_local_experts; 0: dense
  std::int64_t num_experts_per_tok = 0;
  std::int64_t moe_intermediate_size = 0;
  std::optional<bool> norm_topk_prob;
  std::optional<std::int64_t> decoder_sparse_step;  ///< layer i is sparse where (i + 1) is a multiple of it
  std::vector<std::int64_t> mlp_only_layers;        ///< layers that are dense all the same
  std::vector<TokenId> eos_token_ids;
  std::string quantization;  ///< quant_method of quantization_config; such weights are refused
};

/// Sampling defaults that a model brings (generation_config.json). Absent keys stay absent.
struct GenerationConfig {
  std::optional<bool> do_sample;
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<std::int64_t> top_k;
  std::vector<TokenId> eos_token_ids;
};

/// model_type alone, empty where the file does not say: whether a family can read the rest should be asked
/// before reading it.
std::string parse_model_type(std::string_view json, std::string_view source);

/// Throws Error{file} naming key, expected and found for values of the wrong type or out of any sane range
/// (dimensions 1..2^31, epsilon in (0, 1), theta finite and positive).
ModelConfig parse_model_config(std::string_view json, std::string_view source);
GenerationConfig parse_generation_config(std::string_view json, std::string_view source);

}  // namespace qgen
