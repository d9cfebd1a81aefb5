#include "models/qwen3/qwen3.h"

#include <string>
#include <utility>

#include "models/qwen3/shape.h"
#include "models/rope.h"
#include "models/weight_binder.h"

// The decoder of Qwen3, Qwen2, Llama and Mistral: pre-norm blocks of grouped-query attention with rotary
// positions and a gated feed-forward part, or a mixture of many small ones.
//
//   h = embed_tokens[token]
//   for each layer:
//     x = RMSNorm(h) * input_layernorm
//     q, k, v = x q_proj^T, x k_proj^T, x v_proj^T            + bias: Qwen2, or attention_bias
//     q, k = RMSNorm(q) * q_norm, RMSNorm(k) * k_norm         head by head: Qwen3
//     q, k = rope(q), rope(k)
//     h = h + (softmax(q k^T / sqrt(d)) v) o_proj^T           + bias: attention_bias
//     x = RMSNorm(h) * post_attention_layernorm
//     h = h + (silu(x gate_proj^T) * (x up_proj^T)) down_proj^T
//     or, with experts: h = h + sum of p_e * the same of expert e over the num_experts_per_tok largest of
//     p = softmax(x gate^T)                                   divided by their sum: norm_topk_prob
//   logits = (RMSNorm(h) * norm) lm_head^T

namespace qgen {
namespace {

std::string block_name(std::int64_t layer) {
  return "layers." + std::to_string(layer) + ".";
}

void add_attention(std::int64_t layer, const DecoderShape& shape, WeightBinder& w,
                   std::vector<Stage>& stages) {
  const std::int64_t D = shape.dims.width, d = shape.dims.head_dim;
  const std::int64_t H = shape.dims.heads, K = shape.dims.kv_heads;
  const std::string block = block_name(layer), attn = block + "self_attn.";
  stages.emplace_back(NormQkvStage{.layer = layer,
                                   .norm = w(block + "input_layernorm.weight", {D}),
                                   .q_proj = w(attn + "q_proj.weight", {H * d, D}),
                                   .k_proj = w(attn + "k_proj.weight", {K * d, D}),
                                   .v_proj = w(attn + "v_proj.weight", {K * d, D}),
                                   .q_bias = w.where(shape.qkv_bias, attn + "q_proj.bias", {H * d}),
                                   .k_bias = w.where(shape.qkv_bias, attn + "k_proj.bias", {K * d}),
                                   .v_bias = w.where(shape.qkv_bias, attn + "v_proj.bias", {K * d}),
                                   .q_norm = w.where(shape.qk_norm, attn + "q_norm.weight", {d}),
                                   .k_norm = w.where(shape.qk_norm, attn + "k_norm.weight", {d})});
  stages.emplace_back(AttendStage{.layer = layer});
  stages.emplace_back(ProjectAddStage{.layer = layer,
                                      .input = ProjectInput::attention,
                                      .weight = w(attn + "o_proj.weight", {D, H * d}),
                                      .bias = w.where(shape.o_bias, attn + "o_proj.bias", {D})});
}

void add_feed_forward(std::int64_t layer, const PlanDims& dims, WeightBinder& w, std::vector<Stage>& stages) {
  const std::int64_t D = dims.width, F = dims.feed_forward;
  const std::string block = block_name(layer), mlp = block + "mlp.";
  stages.emplace_back(NormGateUpStage{.layer = layer,
                                      .norm = w(block + "post_attention_layernorm.weight", {D}),
                                      .gate_proj = w(mlp + "gate_proj.weight", {F, D}),
                                      .up_proj = w(mlp + "up_proj.weight", {F, D})});
  stages.emplace_back(ProjectAddStage{
      .layer = layer, .input = ProjectInput::feed_forward, .weight = w(mlp + "down_proj.weight", {D, F})});
  for (const char* matrix : {"gate_proj", "up_proj", "down_proj"}) w.refuse(mlp + matrix + ".bias");
  w.refuse(mlp + "gate.weight");
}

void add_experts(std::int64_t layer, const DecoderShape& shape, WeightBinder& w, std::vector<Stage>& stages) {
  const std::int64_t D = shape.dims.width, E = shape.dims.experts, M = shape.dims.expert_width;
  const std::string block = block_name(layer), mlp = block + "mlp.";
  MoeStage stage{.layer = layer,
                 .norm = w(block + "post_attention_layernorm.weight", {D}),
                 .router = w(mlp + "gate.weight", {E, D}),
                 .gate_proj = {},
                 .up_proj = {},
                 .down_proj = {},
                 .norm_topk_prob = shape.norm_topk_prob};
  const auto expert_name = [&](std::int64_t expert) {
    return mlp + "experts." + std::to_string(expert) + ".";
  };
  for (std::int64_t expert = 0; expert < E; ++expert) {
    stage.gate_proj.push_back(w(expert_name(expert) + "gate_proj.weight", {M, D}));
    stage.up_proj.push_back(w(expert_name(expert) + "up_proj.weight", {M, D}));
    stage.down_proj.push_back(w(expert_name(expert) + "down_proj.weight", {D, M}));
  }
  stages.emplace_back(std::move(stage));
  w.refuse(expert_name(E) + "gate_proj.weight");
  w.refuse(mlp + "gate_proj.weight");
}

void add_layer(std::int64_t layer, const DecoderShape& shape, WeightBinder& w, std::vector<Stage>& stages) {
  add_attention(layer, shape, w, stages);
  if (shape.has_experts(layer)) {
    add_experts(layer, shape, w, stages);
  } else {
    add_feed_forward(layer, shape.dims, w, stages);
  }
}

class Qwen3Architecture final : public Architecture {
 public:
  [[nodiscard]] std::vector<std::string_view> model_types() const override {
    std::vector<std::string_view> types;
    for (const FamilyMember& member : family_members()) types.push_back(member.model_type);
    return types;
  }

  [[nodiscard]] Plan plan(const ModelConfig& config, const Checkpoint& checkpoint) const override {
    // Exports of the model without its head leave the common prefix out.
    const bool headless = checkpoint.find("model.embed_tokens.weight") == nullptr &&
                          checkpoint.find("embed_tokens.weight") != nullptr;
    const std::string prefix = headless ? "" : "model.";
    const DecoderShape shape =
        decoder_shape(config, checkpoint.find(prefix + "layers.0.self_attn.q_proj.weight"));
    const std::int64_t L = shape.dims.layers, D = shape.dims.width, V = shape.dims.vocab;

    Plan plan;
    plan.dims = shape.dims;
    plan.norm_eps = shape.norm_eps;
    WeightBinder w(checkpoint, plan, prefix);
    const WeightId embed = w("embed_tokens.weight", {V, D});
    plan.stages.emplace_back(EmbedStage{.table = embed});
    for (std::int64_t layer = 0; layer < L; ++layer) add_layer(layer, shape, w, plan.stages);
    w.refuse("layers." + std::to_string(L) + ".input_layernorm.weight");

    // A head in the file is used even where the config ties it, as the reference implementation does: if the
    // two are equal nothing changes, and if they are not the config is wrong.
    const bool tied = shape.tied && checkpoint.find("lm_head.weight") == nullptr;
    const WeightId norm = w("norm.weight", {D});
    const WeightId head = tied ? embed : WeightBinder(checkpoint, plan, "")("lm_head.weight", {V, D});
    plan.stages.emplace_back(NormHeadStage{.norm = norm, .head = head});
    plan.rope =
        make_rope(config, shape.dims.head_dim);  // after the weights have borne out the size of a head
    check_plan(plan);
    return plan;
  }
};

}  // namespace

const Architecture& qwen3_architecture() {
  static const Qwen3Architecture architecture;
  return architecture;
}

}  // namespace qgen
