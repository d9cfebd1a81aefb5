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

}  // namespace

std::string stage_name(const Stage& stage) {
  return std::visit(NameOf{}, stage);
}

}  // namespace qgen
