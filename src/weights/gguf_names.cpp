#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "qgen/weights/gguf.h"

namespace qgen {
namespace {

struct Name {
  std::string_view gguf, here;
};

constexpr std::array<Name, 3> kOutside{
    {{"token_embd", "model.embed_tokens"}, {"output_norm", "model.norm"}, {"output", "lm_head"}}};

/// Behind "blk.N." and "model.layers.N.".
constexpr std::array<Name, 15> kInLayer{{{"attn_norm", "input_layernorm"},
                                         {"ffn_norm", "post_attention_layernorm"},
                                         {"attn_q", "self_attn.q_proj"},
                                         {"attn_k", "self_attn.k_proj"},
                                         {"attn_v", "self_attn.v_proj"},
                                         {"attn_output", "self_attn.o_proj"},
                                         {"attn_q_norm", "self_attn.q_norm"},
                                         {"attn_k_norm", "self_attn.k_norm"},
                                         {"ffn_gate", "mlp.gate_proj"},
                                         {"ffn_up", "mlp.up_proj"},
                                         {"ffn_down", "mlp.down_proj"},
                                         {"ffn_gate_inp", "mlp.gate"},
                                         {"ffn_gate_exps", "mlp.experts.gate_proj"},
                                         {"ffn_up_exps", "mlp.experts.up_proj"},
                                         {"ffn_down_exps", "mlp.experts.down_proj"}}};

constexpr std::string_view kGgufLayer = "blk.", kLayer = "model.layers.", kExperts = "mlp.experts.";

/// The decimal number and the point that `text` begins with, or nothing.
std::string_view number_and_point(std::string_view text) {
  const std::size_t end = std::min(text.find_first_not_of("0123456789"), text.size());
  if (end == 0 || end == text.size() || text[end] != '.') return {};
  return text.substr(0, end + 1);
}

template <std::size_t kCount>
std::optional<std::string_view> translate(const std::array<Name, kCount>& names, std::string_view stem,
                                          std::string_view Name::*from, std::string_view Name::*to) {
  const auto found = std::ranges::find(names, stem, from);
  return found == names.end() ? std::nullopt : std::optional((*found).*to);
}

/// Both directions: `from` and `to` say which.
std::optional<std::string> rename(std::string_view name, std::string_view Name::*from,
                                  std::string_view Name::*to) {
  const std::size_t point = name.rfind('.');
  const std::string_view kind = point == std::string_view::npos ? "" : name.substr(point);
  if (kind != ".weight" && kind != ".bias") return std::nullopt;
  std::string_view stem = name.substr(0, point);
  const Name layer{kGgufLayer, kLayer};
  if (!stem.starts_with(layer.*from)) {
    const auto known = translate(kOutside, stem, from, to);
    return known ? std::optional(std::string(*known).append(kind)) : std::nullopt;
  }
  stem.remove_prefix((layer.*from).size());
  const std::string_view number = number_and_point(stem);
  if (number.empty()) return std::nullopt;
  const auto known = translate(kInLayer, stem.substr(number.size()), from, to);
  if (!known) return std::nullopt;
  return std::string(layer.*to).append(number).append(*known).append(kind);
}

}  // namespace

std::optional<std::string> name_from_gguf(std::string_view name) {
  return rename(name, &Name::gguf, &Name::here);
}

std::optional<std::string> gguf_name_of(std::string_view name) {
  const std::size_t experts = name.find(kExperts);
  if (experts == std::string_view::npos) return rename(name, &Name::here, &Name::gguf);
  const std::size_t begin = experts + kExperts.size();
  const std::size_t number = number_and_point(name.substr(begin)).size();
  return rename(std::string(name.substr(0, begin)).append(name.substr(begin + number)), &Name::here,
                &Name::gguf);
}

}  // namespace qgen
