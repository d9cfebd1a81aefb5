// A folder in Hugging Face format in the terms of GGUF: its config as metadata, its tensors under other
// names.

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>
#include <string>
#include <system_error>

#include "cli/quantize/source.h"
#include "qgen/base/error.h"
#include "qgen/base/mapped_file.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"
#include "qgen/models/architecture.h"
#include "qgen/weights/gguf.h"

namespace qgen::cli {
namespace {

namespace fs = std::filesystem;

struct Family {
  std::string_view model_type, architecture;
  bool adjacent_pairs;  ///< GGUF has the rows of q and k in the order in which rotated pairs are neighbours
};

constexpr std::array<Family, 5> kFamilies{{{"llama", "llama", true},
                                           {"mistral", "llama", true},
                                           {"qwen2", "qwen2", false},
                                           {"qwen3", "qwen3", false},
                                           {"qwen3_moe", "qwen3moe", false}}};

[[noreturn]] void refuse(const ModelConfig& config, const std::string& what) {
  throw Error(ErrorKind::unsupported, config.source + ": " + what + " cannot be written as GGUF");
}

const Family& family_of(const ModelConfig& config) {
  const auto found = std::ranges::find(kFamilies, config.model_type, &Family::model_type);
  if (found == kFamilies.end()) refuse(config, "a model of type " + in_quotes(config.model_type));
  return *found;
}

/// The model's config under the keys of one architecture.
class ConfigWriter {
 public:
  ConfigWriter(const ModelConfig& config, const Plan& plan, const Family& family, GgufHeader& header)
      : config_(config), plan_(plan), family_(family), header_(header) {}

  void write() {
    const PlanDims& dims = plan_.dims;
    // A window that attention may not leave ends the context, of which GGUF's architectures know nothing.
    const std::int64_t stated = config_.max_position_embeddings;
    number("context_length", stated == 0 ? dims.context : std::min(stated, dims.context));
    number("block_count", dims.layers);
    number("embedding_length", dims.width);
    number("feed_forward_length",
           config_.intermediate_size == 0 ? dims.feed_forward : config_.intermediate_size);
    number("attention.head_count", dims.heads);
    number("attention.head_count_kv", dims.kv_heads);
    number("attention.key_length", dims.head_dim);
    number("attention.value_length", dims.head_dim);
    number("rope.dimension_count", dims.head_dim);
    number("vocab_size", dims.vocab);
    real("attention.layer_norm_rms_epsilon", plan_.norm_eps);
    real("rope.freq_base", theta());
    write_scaling();
    if (config_.num_experts != 0) write_experts();
  }

  /// Llama-3's stretched frequencies are a tensor of GGUF: what each pair's frequency is divided by.
  [[nodiscard]] std::vector<float> frequency_divisors() const {
    std::vector<float> divisors;
    if (config_.rope.type != "llama3") return divisors;
    const std::int64_t half = plan_.dims.head_dim / 2;
    for (std::int64_t i = 0; i < half; ++i) {
      const double plain = std::pow(theta(), -static_cast<double>(i) / static_cast<double>(half));
      divisors.push_back(
          static_cast<float>(plain / static_cast<double>(plan_.rope.inv_freq[static_cast<std::size_t>(i)])));
    }
    return divisors;
  }

 private:
  [[nodiscard]] std::string key(std::string_view name) const {
    return std::string(family_.architecture).append(".").append(name);
  }
  void number(std::string_view name, std::int64_t value) {
    header_.add(key(name), static_cast<std::uint32_t>(value));
  }
  void real(std::string_view name, double value) { header_.add(key(name), static_cast<float>(value)); }
  [[nodiscard]] double theta() const { return config_.rope.theta == 0 ? 10000 : config_.rope.theta; }

  void write_scaling() {
    const RopeConfig& rope = config_.rope;
    if (rope.type == "default" || rope.type == "llama3") return;
    if (rope.type != "linear" && rope.type != "yarn") refuse(config_, "rope type " + in_quotes(rope.type));
    if (!rope.truncate) refuse(config_, "yarn without truncate");
    header_.add(key("rope.scaling.type"), rope.type);
    const std::int64_t original = rope.original_max_position_embeddings;
    const double stretched =
        original == 0 ? 1
                      : static_cast<double>(config_.max_position_embeddings) / static_cast<double>(original);
    real("rope.scaling.factor", rope.factor.value_or(stretched));
    if (rope.type == "linear") return;
    number("rope.scaling.original_context_length",
           original == 0 ? config_.max_position_embeddings : original);
    const bool has_own_scale = rope.attention_factor || rope.mscale || rope.mscale_all_dim;
    if (has_own_scale) real("rope.scaling.yarn_attn_factor", static_cast<double>(plan_.rope.scale));
    if (rope.beta_fast) real("rope.scaling.yarn_beta_fast", *rope.beta_fast);
    if (rope.beta_slow) real("rope.scaling.yarn_beta_slow", *rope.beta_slow);
  }

  void write_experts() {
    if (!config_.mlp_only_layers.empty() || config_.decoder_sparse_step.value_or(1) != 1) {
      refuse(config_, "a mixture of experts with dense layers");
    }
    number("expert_count", config_.num_experts);
    number("expert_used_count", config_.num_experts_per_tok);
    number("expert_feed_forward_length", config_.moe_intermediate_size);
    if (!config_.norm_topk_prob.value_or(false)) header_.add(key("expert_weights_norm"), false);
  }

  const ModelConfig& config_;
  const Plan& plan_;
  const Family& family_;
  GgufHeader& header_;
};

void add_sampling(const GenerationConfig& config, GgufHeader& header) {
  const auto real = [&](const char* name, const std::optional<double>& value) {
    if (value) header.add(std::string("general.sampling.") + name, static_cast<float>(*value));
  };
  // Greedy has no key of its own.
  const bool greedy = !config.do_sample.value_or(true);
  real("temp", greedy ? std::optional(0.0) : config.temperature);
  if (config.top_k) header.add("general.sampling.top_k", static_cast<std::int32_t>(*config.top_k));
  real("top_p", config.top_p);
  real("min_p", config.min_p);
  real("penalty_repeat", config.repetition_penalty);
}

GenerationConfig read_generation_config(const fs::path& path) {
  std::error_code problem;
  if (!fs::exists(path, problem)) return {};
  const MappedFile file(path);
  return parse_generation_config(as_text(file.bytes()), escape_control(path.string()));
}

/// The first number in a name: the layer, or the expert in what is left of it.
std::int64_t number_in(std::string_view name, std::string_view behind, std::int64_t otherwise) {
  const std::size_t at = name.find(behind);
  if (at == std::string_view::npos) return otherwise;
  std::int64_t number = otherwise;
  std::from_chars(name.data() + at + behind.size(), name.data() + name.size(), number);
  return number;
}

/// Collects tensors under their names in GGUF, layer after layer, experts stacked.
class TensorCollector {
 public:
  TensorCollector(const ModelConfig& config, const Plan& plan, const Family& family)
      : config_(config), plan_(plan), family_(family) {}

  void add(const std::string& name, const StoredTensor& tensor) {
    // Tied: the same matrix again; the others are tables of rotary frequencies that old files have.
    const bool again = name == "lm_head.weight" && config_.tie_word_embeddings.value_or(false);
    if (again || name.ends_with(".rotary_emb.inv_freq")) return;
    const std::optional<std::string> known = gguf_name_of(name);
    if (!known) refuse(config_, "tensor " + shorten(name));
    const std::int64_t expert = number_in(name, ".mlp.experts.", -1);
    Place& place = places_[{number_in(*known, "blk.", -1), *known}];
    place.parts[expert] = tensor;
    place.stacked = expert >= 0;
  }

  std::vector<SourceTensor> take() {
    std::vector<SourceTensor> tensors;
    for (auto& [where, place] : places_) {
      SourceTensor tensor{where.second, place.parts.begin()->second.shape, {}, heads_of(where.second)};
      if (place.stacked) tensor.shape.insert(tensor.shape.begin(), std::ssize(place.parts));
      for (auto& [expert, part] : place.parts) {
        check(tensor, part, place.stacked);
        tensor.parts.push_back(std::move(part));
      }
      tensors.push_back(std::move(tensor));
    }
    return tensors;
  }

 private:
  struct Place {
    std::map<std::int64_t, StoredTensor> parts;
    bool stacked = false;
  };

  void check(const SourceTensor& tensor, const StoredTensor& part, bool stacked) const {
    const auto begin = tensor.shape.begin() + (stacked ? 1 : 0);
    if (!std::equal(begin, tensor.shape.end(), part.shape.begin(), part.shape.end())) {
      refuse(config_, "tensor " + tensor.name + ", whose experts have different shapes,");
    }
    if (!is_weight_type(part.dtype)) {
      refuse(config_, "tensor " + tensor.name + " of type " + std::string(dtype_name(part.dtype)));
    }
  }

  [[nodiscard]] std::int64_t heads_of(std::string_view name) const {
    if (!family_.adjacent_pairs) return 0;
    if (name.find(".attn_q.") != std::string_view::npos) return plan_.dims.heads;
    return name.find(".attn_k.") != std::string_view::npos ? plan_.dims.kv_heads : 0;
  }

  const ModelConfig& config_;
  const Plan& plan_;
  const Family& family_;
  std::map<std::pair<std::int64_t, std::string>, Place> places_;  // by layer and name
};

void add_divisors(std::vector<float> divisors, QuantizeSource& source) {
  if (divisors.empty()) return;
  const std::vector<float>& kept = source.made.emplace_back(std::move(divisors));
  const std::vector<std::int64_t> shape{std::ssize(kept)};
  source.tensors.push_back(
      {"rope_freqs.weight",
       shape,
       {{DType::f32, shape, std::as_bytes(std::span(kept)), source.files.front().string()}},
       0});
}

void list_files(const fs::path& folder, std::vector<fs::path>& files) {
  std::error_code problem;
  for (fs::directory_iterator it(folder, problem), end; !problem && it != end; it.increment(problem)) {
    files.push_back(it->path());
  }
}

}  // namespace

QuantizeSource read_folder_source(const fs::path& folder) {
  const fs::path config_path = folder / "config.json";
  const std::string name = escape_control(config_path.string());
  const MappedFile config_file(config_path);
  const Architecture& model = find_architecture(parse_model_type(as_text(config_file.bytes()), name), name);
  const ModelConfig config = parse_model_config(as_text(config_file.bytes()), name);
  const Family& family = family_of(config);
  const GenerationConfig generation = read_generation_config(folder / "generation_config.json");

  QuantizeSource source;
  source.checkpoint = Checkpoint::from_folder(folder);
  list_files(folder, source.files);
  // Nothing is written before the parts are known to fit together.
  const Plan plan = model.plan(config, source.checkpoint);
  std::error_code problem;
  const fs::path whole = fs::canonical(folder, problem);
  source.header.add("general.architecture", family.architecture);
  source.header.add("general.type", "model");
  source.header.add("general.name", replace_invalid_utf8((problem ? folder : whole).filename().string()));
  add_sampling(generation, source.header);
  ConfigWriter writer(config, plan, family, source.header);
  writer.write();
  std::vector<TokenId> end_ids = generation.eos_token_ids;
  end_ids.insert(end_ids.end(), config.eos_token_ids.begin(), config.eos_token_ids.end());
  add_vocabulary(folder, plan.dims.vocab, end_ids, source.header);

  TensorCollector collector(config, plan, family);
  for (const auto& [tensor_name, tensor] : source.checkpoint.tensors()) collector.add(tensor_name, tensor);
  source.tensors = collector.take();
  add_divisors(writer.frequency_divisors(), source);
  return source;
}

}  // namespace qgen::cli
