#include "qgen/plan/plan.h"

namespace qgen {
namespace {

struct NameOf {
  std::string operator()(const EmbedStage&) const { return "embed"; }
  std::string operator()(const NormQkvStage& stage) const { return layered("norm_qkv", stage.layer); }
  std::string operator()(const AttendStage& stage) const { return layered("attend", stage.layer); }
  std::string operator()(const ProjectAddStage& stage) const {
    return layered(
        stage.input == ProjectInput::attention ? "project_add (attention)" : "project_add (feed-forward)",
        stage.layer);
  }
  std::string operator()(const NormGateUpStage& stage) const { return layered("norm_gate_up", stage.layer); }
  std::string operator()(const MoeStage& stage) const { return layered("moe", stage.layer); }
  std::string operator()(const NormHeadStage&) const { return "norm_head"; }

  static std::string layered(const char* kind, std::int64_t layer) {
    return std::string(kind) + " of layer " + std::to_string(layer);
  }
};

struct MatricesOf {
  std::vector<WeightId> operator()(const EmbedStage&) const { return {}; }  // reads single rows
  std::vector<WeightId> operator()(const NormQkvStage& stage) const {
    return {stage.q_proj, stage.k_proj, stage.v_proj};
  }
  std::vector<WeightId> operator()(const AttendStage&) const { return {}; }
  std::vector<WeightId> operator()(const ProjectAddStage& stage) const { return {stage.weight}; }
  std::vector<WeightId> operator()(const NormGateUpStage& stage) const {
    return {stage.gate_proj, stage.up_proj};
  }
  std::vector<WeightId> operator()(const MoeStage& stage) const {
    std::vector<WeightId> ids{stage.router};
    for (std::size_t e = 0; e < stage.gate_proj.size(); ++e) {
      ids.insert(ids.end(), {stage.gate_proj[e], stage.up_proj[e]});
    }
    ids.insert(ids.end(), stage.down_proj.begin(), stage.down_proj.end());
    return ids;
  }
  std::vector<WeightId> operator()(const NormHeadStage& stage) const { return {stage.head}; }
};

}  // namespace

std::vector<WeightId> matrices_of(const Stage& stage) {
  return std::visit(MatricesOf{}, stage);
}

std::string stage_name(const Stage& stage) {
  return std::visit(NameOf{}, stage);
}

}  // namespace qgen
