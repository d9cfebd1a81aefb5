#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "qgen/models/architecture.h"
#include "support/error_of.h"
#include "support/safetensors_bytes.h"

namespace qgen::test {

using Shape = std::vector<std::int64_t>;

/// A config.json and the shapes of the tensors beside it, to be bent by each test.
class Model {
 public:
  // D 24, H 4, K 2, d 8, F 40, V 50, L 2: hidden_size / num_attention_heads is 6, not head_dim.
  explicit Model(const std::string& type = "qwen3") {
    config = {
        {"model_type", '"' + type + '"'}, {"hidden_size", "24"},        {"num_hidden_layers", "2"},
        {"num_attention_heads", "4"},     {"num_key_value_heads", "2"}, {"head_dim", "8"},
        {"intermediate_size", "40"},      {"vocab_size", "50"},         {"max_position_embeddings", "512"},
        {"rms_norm_eps", "1e-5"},         {"rope_theta", "10000"},      {"tie_word_embeddings", "false"}};
    tensors = {
        {"model.embed_tokens.weight", {50, 24}}, {"model.norm.weight", {24}}, {"lm_head.weight", {50, 24}}};
    for (const std::string layer : {"model.layers.0.", "model.layers.1."})
      add_layer(layer, type.starts_with("qwen3"));
    if (type == "qwen2") add_qkv_bias();
  }

  void add_qkv_bias() {
    for (const std::string layer : {"model.layers.0.", "model.layers.1."}) {
      tensors[layer + "self_attn.q_proj.bias"] = {32};
      tensors[layer + "self_attn.k_proj.bias"] = {16};
      tensors[layer + "self_attn.v_proj.bias"] = {16};
    }
  }
  void add_o_bias() {
    for (const std::string layer : {"model.layers.0.", "model.layers.1."})
      tensors[layer + "self_attn.o_proj.bias"] = {24};
  }

  /// Gives a layer `experts` experts of 12 rows instead of its feed-forward part.
  void make_sparse(const std::string& layer, std::int64_t experts) {
    for (const char* matrix : {"gate_proj", "up_proj", "down_proj"})
      tensors.erase(layer + "mlp." + matrix + ".weight");
    tensors[layer + "mlp.gate.weight"] = {experts, 24};
    for (std::int64_t e = 0; e < experts; ++e) {
      const std::string expert = layer + "mlp.experts." + std::to_string(e) + ".";
      tensors[expert + "gate_proj.weight"] = {12, 24};
      tensors[expert + "up_proj.weight"] = {12, 24};
      tensors[expert + "down_proj.weight"] = {24, 12};
    }
  }

  [[nodiscard]] ModelConfig parsed() const {
    std::string json;
    for (const auto& [key, value] : config) json += (json.empty() ? "\"" : ",\"") + key + "\":" + value;
    return parse_model_config("{" + json + "}", "config.json");
  }

  [[nodiscard]] Plan plan() const {
    SafetensorsWriter writer;
    for (const auto& [name, shape] : tensors) writer.add(name, shape);
    const std::string file = writer.file();
    const ModelConfig parsed_config = parsed();
    return find_architecture(parsed_config)
        .plan(parsed_config, Checkpoint::from_bytes(as_bytes(file), "weights"));
  }

  [[nodiscard]] std::string refusal(ErrorKind kind = ErrorKind::file) const {
    return error_of([&] { (void)plan(); }, kind);
  }

  std::map<std::string, std::string> config;
  std::map<std::string, Shape> tensors;

 private:
  void add_layer(const std::string& layer, bool qk_norm) {
    tensors[layer + "input_layernorm.weight"] = {24};
    tensors[layer + "post_attention_layernorm.weight"] = {24};
    tensors[layer + "self_attn.q_proj.weight"] = {32, 24};
    tensors[layer + "self_attn.k_proj.weight"] = {16, 24};
    tensors[layer + "self_attn.v_proj.weight"] = {16, 24};
    tensors[layer + "self_attn.o_proj.weight"] = {24, 32};
    tensors[layer + "mlp.gate_proj.weight"] = {40, 24};
    tensors[layer + "mlp.up_proj.weight"] = {40, 24};
    tensors[layer + "mlp.down_proj.weight"] = {24, 40};
    if (qk_norm) tensors[layer + "self_attn.q_norm.weight"] = {8};
    if (qk_norm) tensors[layer + "self_attn.k_norm.weight"] = {8};
  }
};

}  // namespace qgen::test
