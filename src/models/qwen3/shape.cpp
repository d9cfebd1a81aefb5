#include "models/qwen3/shape.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "models/rope.h"
#include "qgen/base/error.h"
#include "qgen/base/utf8.h"

namespace qgen {
namespace {

constexpr std::array<FamilyMember, 5> kMembers{{
    {.model_type = "qwen3",
     .qk_norm = true,
     .qkv_bias = false,
     .attention_bias = true,
     .head_dim = 128,
     .max_position_embeddings = 32768,
     .window = WindowRule::switched},
    {.model_type = "qwen3_moe",
     .qk_norm = true,
     .qkv_bias = false,
     .attention_bias = true,
     .head_dim = 0,
     .max_position_embeddings = 32768,
     .window = WindowRule::all_switched,
     .experts = true},
    {.model_type = "qwen2",
     .qk_norm = false,
     .qkv_bias = true,
     .attention_bias = false,
     .head_dim = 0,
     .max_position_embeddings = 32768,
     .window = WindowRule::switched},
    {.model_type = "llama",
     .qk_norm = false,
     .qkv_bias = false,
     .attention_bias = true,
     .head_dim = 0,
     .max_position_embeddings = 2048,
     .window = WindowRule::never},
    {.model_type = "mistral",
     .qk_norm = false,
     .qkv_bias = false,
     .attention_bias = false,
     .head_dim = 0,
     .max_position_embeddings = 131072,
     .window = WindowRule::always},
}};

constexpr double kNormEps = 1e-6;
constexpr std::int64_t kSlidingWindow = 4096;
constexpr std::int64_t kMaxWindowLayers = 28;
constexpr std::string_view kFull = "full_attention", kSliding = "sliding_attention";

[[noreturn]] void fail(const ModelConfig& config, const std::string& reason,
                       ErrorKind kind = ErrorKind::file) {
  throw Error(kind, config.source + ": " + reason);
}

[[noreturn]] void refuse(const ModelConfig& config, const std::string& what) {
  fail(config, what + " is not supported", ErrorKind::unsupported);
}

std::int64_t stated(const ModelConfig& config, std::int64_t value, const char* key) {
  if (value == 0) fail(config, std::string(key) + ": missing");
  return value;
}

void refuse_variants(const ModelConfig& config) {
  if (!config.quantization.empty()) {
    refuse(config, "quantization_config (" + shorten(config.quantization) + ")");
  }
  if (config.hidden_act != "silu") refuse(config, "hidden_act " + shorten(config.hidden_act));
  if (config.mlp_bias) refuse(config, "mlp_bias true");
  if (config.partial_rotary_factor != 1) {
    refuse(config, "partial_rotary_factor " + std::to_string(config.partial_rotary_factor));
  }
  // Classifiers and reward models share model_type, but their last matrix gives no logits of tokens.
  for (const std::string& name : config.architectures) {
    if (name.find("For") != std::string::npos && !name.ends_with("ForCausalLM")) {
      refuse(config, "architectures " + shorten(name));
    }
  }
}

void check_layer_types(const ModelConfig& config) {
  if (config.layer_types.empty()) return;
  for (const std::string& type : config.layer_types) {
    if (type != kFull && type != kSliding) refuse(config, "layer_types " + shorten(type));
  }
  if (static_cast<std::int64_t>(config.layer_types.size()) != config.num_hidden_layers) {
    fail(config, "layer_types: " + std::to_string(config.num_hidden_layers) +
                     " entries expected (num_hidden_layers), " + std::to_string(config.layer_types.size()) +
                     " found");
  }
}

bool has_sliding_layer(const ModelConfig& config, WindowRule rule) {
  if (rule == WindowRule::never || rule == WindowRule::always) return rule == WindowRule::always;
  if (!config.use_sliding_window.value_or(false)) return false;
  if (rule == WindowRule::all_switched) return true;
  if (!config.layer_types.empty())
    return std::ranges::find(config.layer_types, kSliding) != config.layer_types.end();
  return config.num_hidden_layers > config.max_window_layers.value_or(kMaxWindowLayers);
}

/// Within a window, attention to the window is attention to everything: the context ends where they part.
std::int64_t context(const ModelConfig& config, const FamilyMember& member) {
  const std::int64_t stated_positions = config.max_position_embeddings;
  const std::int64_t positions =
      rope_context(config, stated_positions == 0 ? member.max_position_embeddings : stated_positions);
  const std::int64_t window = config.sliding_window.value_or(kSlidingWindow);
  return window != 0 && has_sliding_layer(config, member.window) ? std::min(positions, window) : positions;
}

std::int64_t head_dim(const ModelConfig& config, const FamilyMember& member, const StoredTensor* q_proj) {
  if (config.head_dim != 0) return config.head_dim;
  const bool divides = config.hidden_size % config.num_attention_heads == 0;
  const bool square = q_proj != nullptr && !q_proj->shape.empty() && q_proj->shape[0] == config.hidden_size;
  if (member.head_dim != 0 && !(divides && square)) return member.head_dim;
  if (!divides) {
    fail(config, "head_dim: missing, and hidden_size " + std::to_string(config.hidden_size) +
                     " is no multiple of num_attention_heads " + std::to_string(config.num_attention_heads));
  }
  return config.hidden_size / config.num_attention_heads;
}

void check_heads(const ModelConfig& config, const PlanDims& dims) {
  if (dims.heads % dims.kv_heads != 0) {
    fail(config, "num_key_value_heads: a divisor of num_attention_heads " + std::to_string(dims.heads) +
                     " expected, " + std::to_string(dims.kv_heads) + " found");
  }
  if (dims.head_dim % 2 != 0) {
    fail(config, "head_dim: an even number expected, " + std::to_string(dims.head_dim) + " found");
  }
}

/// How many of the layers have experts, from the rule alone: the number of layers is not borne out yet.
std::int64_t count_sparse(const DecoderShape& shape) {
  if (shape.sparse_step == 0) return 0;
  const auto excepted = std::ranges::count_if(shape.dense_layers, [&](std::int64_t layer) {
    return layer < shape.dims.layers && (layer + 1) % shape.sparse_step == 0;
  });
  return shape.dims.layers / shape.sparse_step - excepted;
}

void read_experts(const ModelConfig& config, DecoderShape& shape) {
  shape.sparse_step = config.decoder_sparse_step.value_or(1);
  shape.dense_layers = config.mlp_only_layers;
  std::ranges::sort(shape.dense_layers);
  shape.dense_layers.erase(std::unique(shape.dense_layers.begin(), shape.dense_layers.end()),
                           shape.dense_layers.end());
  if (count_sparse(shape) == 0) return;

  PlanDims& dims = shape.dims;
  dims.experts = stated(config, config.num_experts, "num_experts");
  dims.experts_per_token = stated(config, config.num_experts_per_tok, "num_experts_per_tok");
  dims.expert_width = stated(config, config.moe_intermediate_size, "moe_intermediate_size");
  if (dims.experts_per_token > dims.experts) {
    fail(config, "num_experts_per_tok: at most num_experts " + std::to_string(dims.experts) + " expected, " +
                     std::to_string(dims.experts_per_token) + " found");
  }
  shape.norm_topk_prob = config.norm_topk_prob.value_or(false);
}

}  // namespace

bool DecoderShape::has_experts(std::int64_t layer) const {
  return sparse_step != 0 && (layer + 1) % sparse_step == 0 &&
         !std::ranges::binary_search(dense_layers, layer);
}

std::span<const FamilyMember> family_members() {
  return kMembers;
}

DecoderShape decoder_shape(const ModelConfig& config, const StoredTensor* q_proj) {
  const FamilyMember& member = *std::ranges::find(kMembers, config.model_type, &FamilyMember::model_type);
  refuse_variants(config);
  DecoderShape shape;
  PlanDims& dims = shape.dims;
  dims.layers = stated(config, config.num_hidden_layers, "num_hidden_layers");
  dims.width = stated(config, config.hidden_size, "hidden_size");
  dims.heads = stated(config, config.num_attention_heads, "num_attention_heads");
  dims.kv_heads = config.num_key_value_heads == 0 ? dims.heads : config.num_key_value_heads;
  dims.head_dim = head_dim(config, member, q_proj);
  if (member.experts) read_experts(config, shape);
  if (count_sparse(shape) < dims.layers) {
    dims.feed_forward = stated(config, config.intermediate_size, "intermediate_size");
  }
  dims.vocab = stated(config, config.vocab_size, "vocab_size");
  check_heads(config, dims);
  check_layer_types(config);
  dims.context = context(config, member);

  shape.norm_eps = config.rms_norm_eps == 0 ? kNormEps : config.rms_norm_eps;
  shape.qk_norm = member.qk_norm;
  shape.o_bias = member.attention_bias && config.attention_bias.value_or(false);
  shape.qkv_bias = member.qkv_bias || shape.o_bias;
  shape.tied = config.tie_word_embeddings.value_or(false);
  return shape;
}

}  // namespace qgen
