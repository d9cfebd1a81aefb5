#include <array>
#include <cmath>
#include <string>
#include <string_view>

#include "qgen/base/error.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"
#include "qgen/plan/plan.h"

namespace qgen {
namespace {

[[noreturn]] void fail(const std::string& message) {
  throw Error(ErrorKind::file, message);
}

/// Checks one stage at a time against the dimensions and against its place in the order.
class Checker {
 public:
  explicit Checker(const Plan& plan) : plan_(plan), dims_(plan.dims) {}

  void run() {
    check_dims();
    next<EmbedStage>();
    for (layer_ = 0; layer_ < dims_.layers; ++layer_) {
      next<NormQkvStage>();
      next<AttendStage>();
      expect_input(next<ProjectAddStage>(), ProjectInput::attention);
      if (next_ < plan_.stages.size() && std::holds_alternative<MoeStage>(plan_.stages[next_])) {
        next<MoeStage>();
        has_experts_ = true;
      } else {
        next<NormGateUpStage>();
        expect_input(next<ProjectAddStage>(), ProjectInput::feed_forward);
      }
    }
    next<NormHeadStage>();
    if (!has_experts_ && (dims_.experts != 0 || dims_.experts_per_token != 0 || dims_.expert_width != 0)) {
      fail("the plan has a number of experts, but no layer with experts");
    }
    if (next_ != plan_.stages.size()) {
      fail("the plan has " + std::to_string(plan_.stages.size()) + " stages, expected " +
           std::to_string(next_) + " for " + std::to_string(dims_.layers) + " layers");
    }
  }

 private:
  void check_dims() const {
    positive("layers", dims_.layers);
    positive("hidden_size", dims_.width);
    positive("num_attention_heads", dims_.heads);
    positive("num_key_value_heads", dims_.kv_heads);
    positive("head_dim", dims_.head_dim);
    if (dims_.feed_forward != 0) positive("intermediate_size", dims_.feed_forward);
    positive("vocab_size", dims_.vocab);
    positive("context", dims_.context);
    if (dims_.heads % dims_.kv_heads != 0) {
      fail("num_attention_heads " + std::to_string(dims_.heads) + " is no multiple of num_key_value_heads " +
           std::to_string(dims_.kv_heads));
    }
    if (dims_.head_dim % 2 != 0) fail("head_dim " + std::to_string(dims_.head_dim) + " is odd");
    if (!(plan_.norm_eps > 0) || !(plan_.norm_eps < 1)) fail("rms_norm_eps must lie between 0 and 1");
    if (plan_.rope.inv_freq.size() != static_cast<std::size_t>(dims_.head_dim / 2)) {
      fail("the plan has " + std::to_string(plan_.rope.inv_freq.size()) + " rotary frequencies, expected " +
           std::to_string(dims_.head_dim / 2));
    }
    for (const float frequency : plan_.rope.inv_freq) {
      if (!std::isfinite(frequency)) fail("a rotary frequency is not finite");
    }
    if (!std::isfinite(plan_.rope.scale)) fail("the rotary scale is not finite");
  }

  static void positive(const char* name, std::int64_t value) {
    // 2^31 bounds every product of two dimensions and an element size within 64 bits.
    if (value < 1 || value > (std::int64_t{1} << 31)) {
      fail(std::string(name) + " is " + std::to_string(value) + ", expected 1 to 2147483648");
    }
  }

  /// Checks the next stage, which must be of this kind and layer.
  template <typename Kind>
  const Kind& next() {
    if (next_ == plan_.stages.size()) {
      fail("the plan has " + std::to_string(next_) + " stages, expected more for " +
           std::to_string(dims_.layers) + " layers");
    }
    const Kind* found = std::get_if<Kind>(&plan_.stages[next_]);
    const auto place = [&] {
      return "stage " + std::to_string(next_) + " of the plan is " + stage_name(plan_.stages[next_]);
    };
    if (found == nullptr) fail(place() + ", which does not belong there");
    if constexpr (requires { found->layer; }) {
      if (found->layer != layer_) fail(place() + ", expected layer " + std::to_string(layer_));
    }
    check(*found);
    ++next_;
    return *found;
  }

  static void expect_input(const ProjectAddStage& stage, ProjectInput input) {
    if (stage.input != input) fail(stage_name(stage) + " reads the wrong input");
  }

  void check(const EmbedStage& stage) const { matrix(stage.table, dims_.vocab, dims_.width); }
  void check(const NormQkvStage& stage) const {
    const std::int64_t q_rows = dims_.heads * dims_.head_dim;
    const std::int64_t kv_rows = dims_.kv_heads * dims_.head_dim;
    vector(stage.norm, dims_.width);
    matrix(stage.q_proj, q_rows, dims_.width);
    matrix(stage.k_proj, kv_rows, dims_.width);
    matrix(stage.v_proj, kv_rows, dims_.width);
    optional_vector(stage.q_bias, q_rows);
    optional_vector(stage.k_bias, kv_rows);
    optional_vector(stage.v_bias, kv_rows);
    optional_vector(stage.q_norm, dims_.head_dim);
    optional_vector(stage.k_norm, dims_.head_dim);
  }
  void check(const AttendStage& /*stage*/) const {}
  void check(const ProjectAddStage& stage) const {
    matrix(stage.weight, dims_.width,
           stage.input == ProjectInput::attention ? dims_.heads * dims_.head_dim : dims_.feed_forward);
    optional_vector(stage.bias, dims_.width);
  }
  void check(const NormGateUpStage& stage) const {
    positive("intermediate_size", dims_.feed_forward);
    vector(stage.norm, dims_.width);
    matrix(stage.gate_proj, dims_.feed_forward, dims_.width);
    matrix(stage.up_proj, dims_.feed_forward, dims_.width);
  }
  void check(const MoeStage& stage) const {
    positive("num_experts", dims_.experts);
    positive("num_experts_per_tok", dims_.experts_per_token);
    positive("moe_intermediate_size", dims_.expert_width);
    if (dims_.experts_per_token > dims_.experts) {
      fail("num_experts_per_tok " + std::to_string(dims_.experts_per_token) + " is more than num_experts " +
           std::to_string(dims_.experts));
    }
    vector(stage.norm, dims_.width);
    matrix(stage.router, dims_.experts, dims_.width);
    expert_matrices(stage, "gate_proj", stage.gate_proj, dims_.expert_width, dims_.width);
    expert_matrices(stage, "up_proj", stage.up_proj, dims_.expert_width, dims_.width);
    expert_matrices(stage, "down_proj", stage.down_proj, dims_.width, dims_.expert_width);
  }
  void check(const NormHeadStage& stage) const {
    vector(stage.norm, dims_.width);
    matrix(stage.head, dims_.vocab, dims_.width);
  }

  void expert_matrices(const MoeStage& stage, const char* name, const std::vector<WeightId>& ids,
                       std::int64_t rows, std::int64_t cols) const {
    if (std::ssize(ids) != dims_.experts) {
      fail(stage_name(stage) + " has " + std::to_string(ids.size()) + " times " + name + ", expected " +
           std::to_string(dims_.experts));
    }
    for (const WeightId id : ids) matrix(id, rows, cols);
  }
  void vector(WeightId id, std::int64_t length) const { matrix(id, 1, length); }
  void optional_vector(WeightId id, std::int64_t length) const {
    if (id != kNoWeight) vector(id, length);
  }
  void matrix(WeightId id, std::int64_t rows, std::int64_t cols) const {
    if (id < 0 || static_cast<std::size_t>(id) >= plan_.weights.size()) {
      fail("the plan names weight " + std::to_string(id) + " of " + std::to_string(plan_.weights.size()));
    }
    const PlanWeight& weight = plan_.weights[static_cast<std::size_t>(id)];
    const TensorView& view = weight.view;
    const std::string name = "tensor " + shorten(weight.name);
    if (view.data == nullptr) fail(name + " has no data");
    if (!is_weight_type(view.dtype)) {
      fail(name + " is of type " + std::string(dtype_name(view.dtype)) + ", a weight type is expected");
    }
    if (view.rows != rows || view.cols != cols) {
      fail(name + " has shape " + shape_text(std::array{view.rows, view.cols}) + ", expected " +
           shape_text(std::array{rows, cols}));
    }
    if (cols % block_elements(view.dtype) != 0) {
      fail(name + " has rows of " + std::to_string(cols) + ", expected a multiple of " +
           std::to_string(block_elements(view.dtype)) + ", the block of " +
           std::string(dtype_name(view.dtype)));
    }
    if (view.stride < row_bytes(view.dtype, cols)) fail(name + " has overlapping rows");
  }

  const Plan& plan_;
  const PlanDims& dims_;
  bool has_experts_ = false;
  std::size_t next_ = 0;    // stage to be checked
  std::int64_t layer_ = 0;  // that it should belong to
};

}  // namespace

void check_plan(const Plan& plan) {
  Checker(plan).run();
}

}  // namespace qgen
