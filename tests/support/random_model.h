#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <random>
#include <string>
#include <vector>

#include "qgen/plan/plan.h"
#include "qgen/tensor/block_format.h"

namespace qgen::test {

/// What a random model looks like.
struct ModelShape {
  PlanDims dims{2, 32, 4, 2, 8, 48, 67, 4096};
  std::vector<DType> dtypes{
      DType::f32};  ///< dealt out to the weights in turn; f32 where rows are no whole blocks
  bool qkv_bias = false;
  bool o_bias = false;
  bool qk_norm = true;
  bool tied = true;
  RopePairs pairs = RopePairs::half_split;
  float rope_scale = 1;
  std::vector<std::int64_t> dense_layers;  ///< where dims.experts says that there are experts: those without
  bool norm_topk_prob = true;
  std::uint32_t seed = 1;
};

/// A plan together with the random weights that it refers to. Weights are large enough for attention and
/// logits to be far from uniform, so that a wrong wire shows.
class RandomModel {
 public:
  explicit RandomModel(const ModelShape& shape) : shape_(shape), random_(shape.seed) {
    plan_.dims = shape.dims;
    plan_.norm_eps = 1e-6;
    plan_.rope.pairs = shape.pairs;
    plan_.rope.scale = shape.rope_scale;
    const std::int64_t half = shape.dims.head_dim / 2;
    for (std::int64_t i = 0; i < half; ++i) {
      plan_.rope.inv_freq.push_back(
          static_cast<float>(std::pow(10000.0, -static_cast<double>(i) / static_cast<double>(half))));
    }
    build();
  }

  [[nodiscard]] const Plan& plan() const noexcept { return plan_; }
  [[nodiscard]] Plan& plan() noexcept { return plan_; }
  /// The bytes of a weight, to damage them.
  [[nodiscard]] std::vector<std::byte>& storage(WeightId id) {
    return storage_[static_cast<std::size_t>(id)];
  }

 private:
  void build() {
    const PlanDims& d = shape_.dims;
    const std::int64_t q_rows = d.heads * d.head_dim;
    const std::int64_t kv_rows = d.kv_heads * d.head_dim;
    const WeightId table = matrix("embed_tokens", d.vocab, d.width, 1.0);
    plan_.stages.emplace_back(EmbedStage{table});
    for (std::int64_t layer = 0; layer < d.layers; ++layer) {
      NormQkvStage qkv;
      qkv.layer = layer;
      qkv.norm = norm("input_layernorm", d.width);
      qkv.q_proj = matrix("q_proj", q_rows, d.width);
      qkv.k_proj = matrix("k_proj", kv_rows, d.width);
      qkv.v_proj = matrix("v_proj", kv_rows, d.width);
      if (shape_.qkv_bias) {
        qkv.q_bias = matrix("q_bias", 1, q_rows, 0.3);
        qkv.k_bias = matrix("k_bias", 1, kv_rows, 0.3);
        qkv.v_bias = matrix("v_bias", 1, kv_rows, 0.3);
      }
      if (shape_.qk_norm) {
        qkv.q_norm = norm("q_norm", d.head_dim);
        qkv.k_norm = norm("k_norm", d.head_dim);
      }
      plan_.stages.emplace_back(qkv);
      plan_.stages.emplace_back(AttendStage{layer});
      ProjectAddStage o{layer, ProjectInput::attention, matrix("o_proj", d.width, q_rows), kNoWeight};
      if (shape_.o_bias) o.bias = matrix("o_bias", 1, d.width, 0.3);
      plan_.stages.emplace_back(o);
      const auto& dense = shape_.dense_layers;
      if (d.experts == 0 || std::find(dense.begin(), dense.end(), layer) != dense.end()) {
        add_dense(layer);
      } else {
        add_experts(layer);
      }
    }
    const WeightId last = norm("norm", d.width);
    const WeightId head = shape_.tied ? table : matrix("lm_head", d.vocab, d.width);
    plan_.stages.emplace_back(NormHeadStage{last, head});
  }

  void add_dense(std::int64_t layer) {
    const PlanDims& d = shape_.dims;
    NormGateUpStage gate_up;
    gate_up.layer = layer;
    gate_up.norm = norm("post_attention_layernorm", d.width);
    gate_up.gate_proj = matrix("gate_proj", d.feed_forward, d.width);
    gate_up.up_proj = matrix("up_proj", d.feed_forward, d.width);
    plan_.stages.emplace_back(gate_up);
    plan_.stages.emplace_back(ProjectAddStage{layer, ProjectInput::feed_forward,
                                              matrix("down_proj", d.width, d.feed_forward), kNoWeight});
  }

  void add_experts(std::int64_t layer) {
    const PlanDims& d = shape_.dims;
    MoeStage moe;
    moe.layer = layer;
    moe.norm = norm("post_attention_layernorm", d.width);
    // Probabilities lie far apart, so that rounding hardly ever decides who is chosen.
    moe.router = matrix("router", d.experts, d.width, 3 / std::sqrt(static_cast<double>(d.width)));
    for (std::int64_t e = 0; e < d.experts; ++e) {
      moe.gate_proj.push_back(matrix("gate_proj", d.expert_width, d.width));
      moe.up_proj.push_back(matrix("up_proj", d.expert_width, d.width));
      moe.down_proj.push_back(matrix("down_proj", d.width, d.expert_width));
    }
    moe.norm_topk_prob = shape_.norm_topk_prob;
    plan_.stages.emplace_back(moe);
  }

  WeightId norm(const std::string& name, std::int64_t length) { return add(name, 1, length, 0.3, 1.0); }

  WeightId matrix(const std::string& name, std::int64_t rows, std::int64_t cols) {
    return add(name, rows, cols, 1.0 / std::sqrt(static_cast<double>(cols)), 0.0);
  }
  WeightId matrix(const std::string& name, std::int64_t rows, std::int64_t cols, double deviation) {
    return add(name, rows, cols, deviation, 0.0);
  }

  WeightId add(const std::string& name, std::int64_t rows, std::int64_t cols, double deviation, double mean) {
    const auto id = static_cast<WeightId>(plan_.weights.size());
    DType dtype = shape_.dtypes[static_cast<std::size_t>(id) % shape_.dtypes.size()];
    if (cols % block_elements(dtype) != 0) dtype = DType::f32;
    std::normal_distribution<float> normal(static_cast<float>(mean), static_cast<float>(deviation));
    std::vector<std::byte>& bytes =
        storage_.emplace_back(static_cast<std::size_t>(rows * row_bytes(dtype, cols)));
    std::vector<float> values(static_cast<std::size_t>(rows * cols));
    for (float& value : values) value = normal(random_);
    quantizer(dtype)(values.data(), rows * cols, bytes.data());
    TensorView view{bytes.data(), dtype, rows, cols, row_bytes(dtype, cols)};
    plan_.weights.push_back({name, view});
    return id;
  }

  ModelShape shape_;
  std::mt19937 random_;
  std::deque<std::vector<std::byte>> storage_;
  Plan plan_;
};

}  // namespace qgen::test
