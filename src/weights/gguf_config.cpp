#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <set>
#include <string>

#include "qgen/base/error.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"
#include "qgen/weights/gguf.h"

namespace qgen {
namespace {

constexpr std::int64_t kMaxDim = std::int64_t{1} << 31;
constexpr double kMaxNumber = std::numeric_limits<float>::max();
constexpr double kTiny = std::numeric_limits<double>::denorm_min();

struct Family {
  std::string_view architecture, model_type;
  bool adjacent_pairs;  // the writers of files reorder the rows of q and k
  bool experts;
};

constexpr std::array<Family, 4> kFamilies{{{"llama", "llama", true, false},
                                           {"qwen2", "qwen2", false, false},
                                           {"qwen3", "qwen3", false, false},
                                           {"qwen3moe", "qwen3_moe", false, true}}};

const Family& family_of(const GgufMetadata& metadata) {
  constexpr std::string_view kKey = "general.architecture", kType = "general.type";
  const std::optional<std::string_view> name = metadata.text(kKey);
  const auto found = std::ranges::find(kFamilies, name.value_or(""), &Family::architecture);
  if (found == kFamilies.end()) {
    std::vector<std::string_view> known;
    for (const Family& family : kFamilies) known.push_back(family.architecture);
    metadata.fail(kKey,
                  "one of " + join(known) + " expected (no other is supported), " +
                      (name ? in_quotes(*name) : "nothing") + " found",
                  ErrorKind::unsupported);
  }
  const std::string_view type = metadata.text(kType).value_or("model");
  if (type != "model") {
    metadata.fail(kType, "\"model\" expected, " + in_quotes(type) + " found", ErrorKind::unsupported);
  }
  return *found;
}

const StoredTensor* find_tensor(const Gguf& gguf, std::string_view name) {
  const auto found = std::ranges::find(gguf.tensors(), name, &GgufTensor::name);
  return found == gguf.tensors().end() ? nullptr : &found->tensor;
}

/// Reads the keys of one architecture into a ModelConfig.
class ConfigOf {
 public:
  ConfigOf(const Gguf& gguf, const Family& family)
      : gguf_(gguf), metadata_(gguf.metadata()), family_(family) {}

  ModelConfig read() {
    ModelConfig config;
    config.source = metadata_.source();
    config.model_type = family_.model_type;
    config.num_hidden_layers = dimension("block_count");
    config.hidden_size = dimension("embedding_length");
    config.intermediate_size = same_in_all_layers("feed_forward_length").value_or(0);
    if (config.intermediate_size == 0 && !family_.experts) missing("feed_forward_length");
    config.max_position_embeddings = dimension("context_length");
    read_heads(config);
    const std::string eps = key("attention.layer_norm_rms_epsilon");
    config.rms_norm_eps = metadata_.number(eps, kTiny, 0.999).value_or(0);
    if (config.rms_norm_eps == 0) metadata_.fail(eps, "missing");
    read_window(config);
    read_tensors(config);
    read_rope(config);
    read_experts(config);
    return config;
  }

 private:
  [[nodiscard]] std::string key(std::string_view name) const {
    return std::string(family_.architecture).append(".").append(name);
  }
  [[noreturn]] void missing(std::string_view name) const { metadata_.fail(key(name), "missing"); }
  [[noreturn]] void unsupported(std::string_view name, const std::string& found) const {
    metadata_.fail(key(name), found + " is not supported", ErrorKind::unsupported);
  }

  [[nodiscard]] std::optional<std::int64_t> dimension_if_stated(std::string_view name) const {
    return metadata_.integer(key(name), 1, kMaxDim);
  }
  [[nodiscard]] std::int64_t dimension(std::string_view name) const {
    const auto value = dimension_if_stated(name);
    if (!value) missing(name);
    return *value;
  }

  /// A number, or an array of one number for each layer, which must be all alike.
  [[nodiscard]] std::optional<std::int64_t> same_in_all_layers(std::string_view name) const {
    const GgufValue* value = metadata_.find(key(name));
    if (value == nullptr || value->type != GgufType::array) return dimension_if_stated(name);
    const std::vector<std::int64_t> each = *metadata_.integers(key(name));
    if (each.empty() || each.front() < 1 || each.front() > kMaxDim) {
      metadata_.fail(key(name), "a number from 1 to " + std::to_string(kMaxDim) + " for each layer expected");
    }
    if (std::ranges::adjacent_find(each, std::not_equal_to<>()) != each.end()) {
      unsupported(name, "a number that differs from layer to layer");
    }
    return each.front();
  }

  void read_heads(ModelConfig& config) const {
    const auto heads = same_in_all_layers("attention.head_count");
    if (!heads) missing("attention.head_count");
    config.num_attention_heads = *heads;
    config.num_key_value_heads = same_in_all_layers("attention.head_count_kv").value_or(*heads);
    if (*heads % config.num_key_value_heads != 0) {
      metadata_.fail(key("attention.head_count_kv"),
                     "a divisor of " + key("attention.head_count") + " " + std::to_string(*heads) +
                         " expected, " + std::to_string(config.num_key_value_heads) + " found");
    }
    const auto stated = dimension_if_stated("attention.key_length");
    if (!stated && config.hidden_size % *heads != 0) {
      metadata_.fail(key("attention.key_length"),
                     "missing, and " + key("embedding_length") + " " + std::to_string(config.hidden_size) +
                         " is no multiple of " + key("attention.head_count") + " " + std::to_string(*heads));
    }
    config.head_dim = stated.value_or(config.hidden_size / *heads);
    if (config.head_dim % 2 != 0) {
      metadata_.fail(key("attention.key_length"),
                     "an even number expected, " + std::to_string(config.head_dim) + " found");
    }
    for (const char* name : {"attention.value_length", "rope.dimension_count"}) {
      const std::int64_t value = dimension_if_stated(name).value_or(config.head_dim);
      if (value != config.head_dim) {
        unsupported(name, std::to_string(value) + " beside heads of " + std::to_string(config.head_dim));
      }
    }
  }

  /// Within the window attention is attention to everything, so the context ends with it.
  void read_window(ModelConfig& config) const {
    const std::int64_t window = metadata_.integer(key("attention.sliding_window"), 0, kMaxDim).value_or(0);
    if (window != 0) config.max_position_embeddings = std::min(config.max_position_embeddings, window);
  }

  void read_tensors(ModelConfig& config) const {
    const StoredTensor* table = find_tensor(gguf_, "token_embd.weight");
    if (table == nullptr || table->shape.size() != 2 || table->shape[0] < 1 || table->shape[0] > kMaxDim) {
      throw Error(ErrorKind::file, metadata_.source() + ": tensor token_embd.weight: a matrix expected, " +
                                       (table == nullptr ? "none" : "shape " + shape_text(table->shape)) +
                                       " found");
    }
    config.vocab_size = table->shape[0];
    config.tie_word_embeddings = find_tensor(gguf_, "output.weight") == nullptr;
    config.attention_bias = find_tensor(gguf_, "blk.0.attn_output.bias") != nullptr;
  }

  void read_rope(ModelConfig& config) const {
    RopeConfig& rope = config.rope;
    rope.adjacent_pairs = family_.adjacent_pairs;
    rope.theta = metadata_.number(key("rope.freq_base"), kTiny, kMaxNumber).value_or(0);
    auto factor = metadata_.number(key("rope.scaling.factor"), 0, kMaxNumber);
    if (!factor) factor = metadata_.number(key("rope.scale_linear"), 0, kMaxNumber);
    const bool stretched = factor.value_or(0) != 0;
    const std::string_view type =
        metadata_.text(key("rope.scaling.type")).value_or(stretched ? "linear" : "none");
    if (type == "none" || (type == "linear" && !stretched)) {
      rope.type = "default";
    } else {
      rope.type = type;
      if (stretched) rope.factor = factor;
    }
    if (type == "yarn") read_yarn(rope);
    read_divisors(config);
  }

  /// rope.scaling.yarn_attn_factor is config.json's attention_factor and stands for the whole scale of cosine
  /// and sine; rope.scaling.attn_factor, which older files have, multiplies the usual one.
  void read_yarn(RopeConfig& rope) const {
    rope.original_max_position_embeddings =
        dimension_if_stated("rope.scaling.original_context_length").value_or(0);
    rope.beta_fast = metadata_.number(key("rope.scaling.yarn_beta_fast"), 0, kMaxNumber);
    rope.beta_slow = metadata_.number(key("rope.scaling.yarn_beta_slow"), 0, kMaxNumber);
    rope.attention_factor = metadata_.number(key("rope.scaling.yarn_attn_factor"), kTiny, kMaxNumber);
    const double more = metadata_.number(key("rope.scaling.attn_factor"), kTiny, kMaxNumber).value_or(1);
    if (more != 1 && !rope.attention_factor) {
      const double factor = std::max(rope.factor.value_or(1), 1.0);
      rope.attention_factor = more * (0.1 * std::log(factor) + 1);
    }
    const double log_multiplier =
        metadata_.number(key("rope.scaling.yarn_log_multiplier"), 0, kMaxNumber).value_or(0);
    if (log_multiplier != 0) {
      rope.mscale = 1;
      rope.mscale_all_dim = log_multiplier;
    }
    const double extrapolated =
        metadata_.number(key("rope.scaling.yarn_ext_factor"), -1, kMaxNumber).value_or(1);
    if (extrapolated != 1 && extrapolated != -1)
      unsupported("rope.scaling.yarn_ext_factor", shortest(extrapolated));
  }

  void read_divisors(ModelConfig& config) const {
    const StoredTensor* tensor = find_tensor(gguf_, "rope_freqs.weight");
    if (tensor == nullptr) return;
    std::vector<float>& divisors = config.rope.frequency_divisors;
    const std::vector<std::int64_t> expected{config.head_dim / 2};
    if (tensor->dtype == DType::f32 && tensor->shape == expected) {
      divisors.resize(static_cast<std::size_t>(expected[0]));
      std::memcpy(divisors.data(), tensor->data.data(), tensor->data.size());
    }
    const bool sound = std::ranges::all_of(divisors, [](float d) { return std::isfinite(d) && d > 0; });
    if (divisors.empty() || !sound) {
      throw Error(ErrorKind::file, tensor->file + ": tensor rope_freqs.weight: " + shape_text(expected) +
                                       " positive numbers of F32 expected, shape " +
                                       shape_text(tensor->shape) + " of " +
                                       std::string(dtype_name(tensor->dtype)) + " found");
    }
  }

  void read_experts(ModelConfig& config) const {
    const std::int64_t experts = metadata_.integer(key("expert_count"), 0, kMaxDim).value_or(0);
    if (!family_.experts) {
      if (experts != 0) unsupported("expert_count", std::to_string(experts));
      return;
    }
    config.num_experts = dimension("expert_count");
    config.num_experts_per_tok = dimension("expert_used_count");
    if (config.num_experts_per_tok > config.num_experts) {
      metadata_.fail(key("expert_used_count"), "at most " + key("expert_count") + " " +
                                                   std::to_string(experts) + " expected, " +
                                                   std::to_string(config.num_experts_per_tok) + " found");
    }
    config.moe_intermediate_size = dimension("expert_feed_forward_length");
    config.norm_topk_prob = metadata_.boolean(key("expert_weights_norm")).value_or(true);
    config.decoder_sparse_step = 1;
    config.mlp_only_layers = dense_layers();
    if (metadata_.integer(key("expert_shared_count"), 0, kMaxDim).value_or(0) != 0) {
      unsupported("expert_shared_count", "a shared expert");
    }
    const double scale = metadata_.number(key("expert_weights_scale"), 0, kMaxNumber).value_or(1);
    if (scale != 1 && scale != 0) unsupported("expert_weights_scale", shortest(scale));
    constexpr std::int64_t kUnstated = 0, kSoftmax = 1;
    const std::int64_t gating = metadata_.integer(key("expert_gating_func"), 0, kMaxDim).value_or(kSoftmax);
    if (gating != kSoftmax && gating != kUnstated) unsupported("expert_gating_func", std::to_string(gating));
  }

  /// Layers that have a plain feed-forward part, as their tensors show.
  [[nodiscard]] std::vector<std::int64_t> dense_layers() const {
    std::set<std::int64_t> layers;
    for (const GgufTensor& tensor : gguf_.tensors()) {
      constexpr std::string_view kBegin = "blk.", kEnd = ".ffn_gate.weight";
      std::string_view name = tensor.name;
      if (!name.starts_with(kBegin) || !name.ends_with(kEnd) || name.size() > kBegin.size() + kEnd.size() + 9)
        continue;
      name.remove_prefix(kBegin.size());
      name.remove_suffix(kEnd.size());
      if (name.empty() || name.find_first_not_of("0123456789") != std::string_view::npos) continue;
      layers.insert(std::stoll(std::string(name)));
    }
    return {layers.begin(), layers.end()};
  }

  const Gguf& gguf_;
  const GgufMetadata& metadata_;
  const Family& family_;
};

}  // namespace

ModelConfig gguf_model_config(const Gguf& gguf) {
  return ConfigOf(gguf, family_of(gguf.metadata())).read();
}

GenerationConfig gguf_generation_config(const GgufMetadata& metadata) {
  GenerationConfig config;
  config.temperature = metadata.number("general.sampling.temp", 0, kMaxNumber);
  config.top_k = metadata.integer("general.sampling.top_k", -1, std::numeric_limits<std::int32_t>::max());
  config.top_p = metadata.number("general.sampling.top_p", 0, 1);
  config.min_p = metadata.number("general.sampling.min_p", 0, 1);
  config.repetition_penalty = metadata.number("general.sampling.penalty_repeat", kTiny, kMaxNumber);
  return config;
}

}  // namespace qgen
