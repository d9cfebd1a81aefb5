#include "qgen/weights/model_config.h"

#include <algorithm>
#include <array>

#include "qgen/base/error.h"
#include "qgen/base/utf8.h"
#include "weights/config_reader.h"

namespace qgen {
namespace {

constexpr std::int64_t kMaxDim = std::int64_t{1} << 31;

std::int64_t dimension(const ConfigReader& read, std::string_view key) {
  return read.integer(key, 1, kMaxDim).value_or(0);
}

/// The rotary settings, under the names of the newer dialect.
constexpr std::array<std::string_view, 13> kRopeKeys{"rope_type",
                                                     "rope_theta",
                                                     "factor",
                                                     "attention_factor",
                                                     "beta_fast",
                                                     "beta_slow",
                                                     "mscale",
                                                     "mscale_all_dim",
                                                     "low_freq_factor",
                                                     "high_freq_factor",
                                                     "truncate",
                                                     "original_max_position_embeddings",
                                                     "partial_rotary_factor"};

bool same(const Json& a, const Json& b) {
  if (a.as_double() && b.as_double()) return *a.as_double() == *b.as_double();
  return describe(a) == describe(b);
}

/// Gathers them from wherever a dialect puts them into one object.
class RopeMembers {
 public:
  explicit RopeMembers(const ConfigReader& config) : config_(config) {
    for (const std::string_view block : {"rope_parameters", "rope_scaling"}) add_block(block);
    for (const std::string_view key :
         {"rope_theta", "original_max_position_embeddings", "partial_rotary_factor"}) {
      if (const Json* value = config_.find(key)) add(key, *value);
    }
  }

  [[nodiscard]] Json take() { return Json(std::move(members_)); }

 private:
  void add_block(std::string_view block) {
    const Json* object = config_.object(block);
    if (object == nullptr) return;
    for (const auto& [name, value] : *object->as_object()) {
      if (value.as_object() != nullptr) {
        throw Error(ErrorKind::unsupported, config_.source() + ": " + std::string(block) +
                                                ": settings for some layers only (" + shorten(name) +
                                                ") are not supported");
      }
      if (!value.is_null()) add(name == "type" ? "rope_type" : name, value);
    }
  }

  void add(std::string_view name, const Json& value) {
    if (std::ranges::find(kRopeKeys, name) == kRopeKeys.end()) return;
    const auto known = std::ranges::find(members_, name, [](const auto& member) { return member.first; });
    if (known == members_.end()) {
      members_.emplace_back(name, value);
    } else if (!same(known->second, value)) {
      throw Error(ErrorKind::file, config_.source() + ": " + known->first + " is stated twice, as " +
                                       describe(known->second) + " and as " + describe(value));
    }
  }

  const ConfigReader& config_;
  JsonObject members_;
};

RopeConfig read_rope(const ConfigReader& read) {
  RopeConfig rope;
  rope.type = read.text("rope_type").value_or(rope.type);
  rope.theta = read.number("rope_theta", kPositive).value_or(0);
  rope.factor = read.number("factor", kPositive);
  rope.attention_factor = read.number("attention_factor", kPositive);
  rope.beta_fast = read.number("beta_fast", kNotNegative);
  rope.beta_slow = read.number("beta_slow", kNotNegative);
  rope.mscale = read.number("mscale", kNotNegative);
  rope.mscale_all_dim = read.number("mscale_all_dim", kNotNegative);
  rope.low_freq_factor = read.number("low_freq_factor", kPositive);
  rope.high_freq_factor = read.number("high_freq_factor", kPositive);
  rope.truncate = read.boolean("truncate").value_or(true);
  rope.original_max_position_embeddings = dimension(read, "original_max_position_embeddings");
  return rope;
}

void read_dimensions(const ConfigReader& read, ModelConfig& config) {
  config.hidden_size = dimension(read, "hidden_size");
  config.num_hidden_layers = dimension(read, "num_hidden_layers");
  config.num_attention_heads = dimension(read, "num_attention_heads");
  config.num_key_value_heads = dimension(read, "num_key_value_heads");
  config.head_dim = dimension(read, "head_dim");
  config.intermediate_size = dimension(read, "intermediate_size");
  config.vocab_size = dimension(read, "vocab_size");
  config.max_position_embeddings = dimension(read, "max_position_embeddings");
}

void read_sliding_window(const ConfigReader& read, const Json& root, ModelConfig& config) {
  const Json* stated = root.find("sliding_window");
  config.sliding_window =
      stated != nullptr && stated->is_null() ? 0 : read.integer("sliding_window", 1, kMaxDim);
  config.use_sliding_window = read.boolean("use_sliding_window");
  config.max_window_layers = read.integer("max_window_layers", 0, kMaxDim);
  config.layer_types = read.texts("layer_types");
}

void read_experts(const ConfigReader& read, ModelConfig& config) {
  const std::int64_t experts = dimension(read, "num_experts");
  const std::int64_t local_experts = dimension(read, "num_local_experts");  // of the newer dialect
  if (experts != 0 && local_experts != 0 && experts != local_experts) {
    throw Error(ErrorKind::file, read.source() + ": num_experts is " + std::to_string(experts) +
                                     ", but num_local_experts is " + std::to_string(local_experts));
  }
  config.num_experts = experts != 0 ? experts : local_experts;
  config.num_experts_per_tok = dimension(read, "num_experts_per_tok");
  config.moe_intermediate_size = dimension(read, "moe_intermediate_size");
  config.norm_topk_prob = read.boolean("norm_topk_prob");
  config.decoder_sparse_step = read.integer("decoder_sparse_step", 1, kMaxDim);
  config.mlp_only_layers = read.integers("mlp_only_layers", 0, kMaxDim);
}

std::string read_quantization(const ConfigReader& read) {
  const Json* block = read.object("quantization_config");
  if (block == nullptr) return {};
  return ConfigReader(*block, read.source()).text("quant_method").value_or("unnamed");
}

std::string read_model_type(const ConfigReader& read) {
  return read.text("model_type").value_or("");
}

}  // namespace

std::string parse_model_type(std::string_view json, std::string_view source) {
  const Json root = parse_json(json, source);
  return read_model_type(ConfigReader(root, escape_control(source)));
}

ModelConfig parse_model_config(std::string_view json, std::string_view source) {
  const Json root = parse_json(json, source);
  const ConfigReader read(root, escape_control(source));
  ModelConfig config;
  config.source = read.source();
  config.model_type = read_model_type(read);
  config.architectures = read.texts("architectures");
  config.hidden_act = read.text("hidden_act").value_or(config.hidden_act);
  read_dimensions(read, config);
  config.rms_norm_eps = read.number("rms_norm_eps", kBetweenZeroAndOne).value_or(0);
  config.tie_word_embeddings = read.boolean("tie_word_embeddings");
  config.attention_bias = read.boolean("attention_bias");
  config.mlp_bias = read.boolean("mlp_bias").value_or(false);
  read_sliding_window(read, root, config);
  read_experts(read, config);

  const Json rope = RopeMembers(read).take();
  const ConfigReader read_members(rope, read.source());
  config.rope = read_rope(read_members);
  config.partial_rotary_factor = read_members.number("partial_rotary_factor", kUnit).value_or(1);

  config.eos_token_ids = read.token_ids("eos_token_id");
  config.quantization = read_quantization(read);
  return config;
}

}  // namespace qgen
