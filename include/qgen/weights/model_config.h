#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/base/bytes.h"

namespace qgen {

/// Scaling of rotary frequencies as config.json states it, both dialects read alike ("type" and "rope_type",
/// "rope_scaling" and "rope_parameters").
struct RopeConfig {
  std::string type =
      "default";     ///< default, linear, yarn, llama3; others are kept here and refused by the model
  double theta = 0;  ///< 0: the file does not say
  double factor = 1;
  std::optional<double> attention_factor;
  double beta_fast = 32, beta_slow = 1;
  double low_freq_factor = 1, high_freq_factor = 4;
  double mscale = 0, mscale_all_dim = 0;
  bool truncate = true;
  std::int64_t original_max_position_embeddings = 0;  ///< 0: the file does not say
};

/// config.json of a decoder, with the checkpoint's own names. Zero or empty means that the file does not say.
struct ModelConfig {
  std::string source;  ///< for messages, already escaped
  std::string model_type;
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
  std::optional<std::int64_t> sliding_window;  ///< only where it is in force (use_sliding_window not false)
  RopeConfig rope;
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

/// Throws Error{file} naming key, expected and found for values of the wrong type or out of any sane range
/// (dimensions 1..2^31, epsilon in (0, 1), theta finite and positive).
ModelConfig parse_model_config(std::string_view json, std::string_view source);
GenerationConfig parse_generation_config(std::string_view json, std::string_view source);

}  // namespace qgen
