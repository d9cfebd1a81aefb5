#include "weights/torch/torch_names.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <vector>

namespace qgen {
namespace {

constexpr std::string_view kLayers = "model.layers.";
constexpr std::int64_t kMostLayers = 1'000'000;

constexpr std::array<NamePair, 3> kCourseCommon{{{"token_embeddings.weight", "model.embed_tokens.weight"},
                                                 {"ln_final.weight", "model.norm.weight"},
                                                 {"lm_head.weight", "lm_head.weight"}}};
constexpr std::array<NamePair, 9> kCourseLayer{{{"ln1.weight", "input_layernorm.weight"},
                                                {"attn.q_proj.weight", "self_attn.q_proj.weight"},
                                                {"attn.k_proj.weight", "self_attn.k_proj.weight"},
                                                {"attn.v_proj.weight", "self_attn.v_proj.weight"},
                                                {"attn.output_proj.weight", "self_attn.o_proj.weight"},
                                                {"ln2.weight", "post_attention_layernorm.weight"},
                                                {"ffn.w1.weight", "mlp.gate_proj.weight"},
                                                {"ffn.w3.weight", "mlp.up_proj.weight"},
                                                {"ffn.w2.weight", "mlp.down_proj.weight"}}};

constexpr std::array<NamePair, 3> kBookCommon{{{"tok_emb.weight", "model.embed_tokens.weight"},
                                               {"final_norm.scale", "model.norm.weight"},
                                               {"out_head.weight", "lm_head.weight"}}};
constexpr std::array<NamePair, 11> kBookLayer{{{"norm1.scale", "input_layernorm.weight"},
                                               {"att.W_query.weight", "self_attn.q_proj.weight"},
                                               {"att.W_key.weight", "self_attn.k_proj.weight"},
                                               {"att.W_value.weight", "self_attn.v_proj.weight"},
                                               {"att.q_norm.scale", "self_attn.q_norm.weight"},
                                               {"att.k_norm.scale", "self_attn.k_norm.weight"},
                                               {"att.out_proj.weight", "self_attn.o_proj.weight"},
                                               {"norm2.scale", "post_attention_layernorm.weight"},
                                               {"ff.fc1.weight", "mlp.gate_proj.weight"},
                                               {"ff.fc2.weight", "mlp.up_proj.weight"},
                                               {"ff.fc3.weight", "mlp.down_proj.weight"}}};

constexpr std::array<std::string_view, 2> kWrappers{"_orig_mod", "module"};
constexpr std::array<std::string_view, 6> kTableWords{"cos", "sin", "freq", "freqs", "mask", "tril"};
constexpr std::array<std::string_view, 3> kPositionWords{"rope", "rotary", "positional"};

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    parts.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

template <typename List>
bool contains(const List& list, std::string_view text) {
  return std::ranges::find(list, text) != list.end();
}

template <typename List>
bool has_word(std::string_view component, const List& list) {
  std::string lower(component);
  for (char& c : lower) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return std::ranges::any_of(split(lower, '_'), [&](std::string_view word) { return contains(list, word); });
}

const NamePair* find_name(std::span<const NamePair> pairs, std::string_view name) {
  const auto found = std::ranges::find(pairs, name, &NamePair::first);
  return found == pairs.end() ? nullptr : &*found;
}

/// The number at the front of "12.rest", written as numbers are; -1 where there is none.
std::int64_t layer_number(std::string_view text, std::string_view& rest) {
  const std::size_t dot = text.find('.');
  if (dot == std::string_view::npos) return -1;
  std::int64_t number = -1;
  const std::string_view digits = text.substr(0, dot);
  const auto [end, problem] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  const bool plain = problem == std::errc() && std::to_string(number) == digits;
  if (!plain || number < 0 || number > kMostLayers) return -1;
  rest = text.substr(dot + 1);
  return number;
}

}  // namespace

const TorchNames kCourseNames{.title = "the language model of CS336",
                              .blocks = "layers.",
                              .common = kCourseCommon,
                              .in_layer = kCourseLayer,
                              .embedding = "token_embeddings.weight",
                              .head = "lm_head.weight",
                              .query = "attn.q_proj.weight",
                              .key = "attn.k_proj.weight",
                              .gate = "ffn.w1.weight",
                              .query_norm = {}};

const TorchNames kBookNames{.title = "the Qwen3 model of \"Build a Reasoning Model (From Scratch)\"",
                            .blocks = "trf_blocks.",
                            .common = kBookCommon,
                            .in_layer = kBookLayer,
                            .embedding = "tok_emb.weight",
                            .head = "out_head.weight",
                            .query = "att.W_query.weight",
                            .key = "att.W_key.weight",
                            .gate = "ff.fc1.weight",
                            .query_norm = "att.q_norm.scale"};

std::optional<std::string> translate(const TorchNames& names, std::string_view name, std::int64_t& layer) {
  layer = -1;
  if (const NamePair* pair = find_name(names.common, name)) return std::string(pair->second);
  if (!name.starts_with(names.blocks)) return std::nullopt;
  std::string_view rest;
  const std::int64_t number = layer_number(name.substr(names.blocks.size()), rest);
  const NamePair* pair = number < 0 ? nullptr : find_name(names.in_layer, rest);
  if (pair == nullptr) return std::nullopt;
  layer = number;
  return std::string(kLayers) + std::to_string(number) + "." + std::string(pair->second);
}

std::string without_wrappers(std::string_view name) {
  std::string result;
  for (const std::string_view component : split(name, '.')) {
    if (contains(kWrappers, component)) continue;
    if (!result.empty()) result += '.';
    result += component;
  }
  return result;
}

bool is_buffer(std::string_view name) {
  const std::vector<std::string_view> components = split(name, '.');
  const std::string_view last = components.back();
  if (last == "weight" || last == "bias") return false;
  return has_word(last, kTableWords) || std::ranges::any_of(components, [](std::string_view component) {
           return has_word(component, kPositionWords);
         });
}

}  // namespace qgen
