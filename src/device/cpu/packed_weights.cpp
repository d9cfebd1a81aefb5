#include "device/cpu/packed_weights.h"

#include <algorithm>
#include <array>
#include <string>

#include "device/cpu/share.h"
#include "qgen/base/error.h"

namespace qgen {
namespace {

/// Source bytes after which their pages are given back.
constexpr std::int64_t kConsumedBytes = std::int64_t{4} << 20;

/// Lists the matrices that a stage multiplies by.
struct MatricesOf {
  std::vector<WeightId>& ids;

  void operator()(const EmbedStage&) const {}  // reads single rows, as the file has them
  void operator()(const NormQkvStage& stage) const {
    ids.insert(ids.end(), {stage.q_proj, stage.k_proj, stage.v_proj});
  }
  void operator()(const AttendStage&) const {}
  void operator()(const ProjectAddStage& stage) const { ids.push_back(stage.weight); }
  void operator()(const NormGateUpStage& stage) const {
    ids.insert(ids.end(), {stage.gate_proj, stage.up_proj});
  }
  void operator()(const MoeStage& stage) const {
    ids.push_back(stage.router);
    for (std::size_t e = 0; e < stage.gate_proj.size(); ++e) {
      ids.insert(ids.end(), {stage.gate_proj[e], stage.up_proj[e]});
    }
    ids.insert(ids.end(), stage.down_proj.begin(), stage.down_proj.end());
  }
  void operator()(const NormHeadStage& stage) const { ids.push_back(stage.head); }
};

std::vector<WeightId> matrices_in_order(const Plan& plan) {
  std::vector<WeightId> ids;
  for (const Stage& stage : plan.stages) std::visit(MatricesOf{ids}, stage);
  // A plan may use a matrix twice.
  std::vector<bool> seen(plan.weights.size());
  std::vector<WeightId> once;
  for (const WeightId id : ids) {
    if (!seen[static_cast<std::size_t>(id)]) once.push_back(id);
    seen[static_cast<std::size_t>(id)] = true;
  }
  return once;
}

/// By WeightId. Their few numbers decide which experts are chosen, so they are not rounded.
std::vector<bool> routers_of(const Plan& plan) {
  std::vector<bool> routers(plan.weights.size());
  for (const Stage& stage : plan.stages) {
    if (const auto* moe = std::get_if<MoeStage>(&stage)) {
      routers[static_cast<std::size_t>(moe->router)] = true;
    }
  }
  return routers;
}

PackedType router_type(DType dtype) noexcept {
  return dtype == DType::f16 || dtype == DType::bf16 ? packed_type_of(dtype) : PackedType::f32;
}

/// Stored blocks that q8 holds value by value are not rounded anew where rotating was asked for.
PackedType held_type(DType dtype, std::optional<PackedType> wanted) noexcept {
  const PackedType own = packed_type_of(dtype);
  if (wanted == PackedType::q8_rotated && own == PackedType::q8) return own;
  return wanted.value_or(own);
}

/// Packs matrices as one member of the team.
class Packer {
 public:
  Packer(const KernelTable& kernels, const ConsumedHook& consumed, std::span<float> rows)
      : kernels_(kernels), consumed_(consumed), rows_(rows) {}

  void pack(const TensorView& source, const PackedMatrix& matrix, Range range,
            std::byte* panels) const noexcept {
    const std::int64_t height = matrix.kernels->panel_rows;
    std::int64_t kept = range.begin;
    for (std::int64_t row = range.begin; row < range.end; row += height) {
      const std::int64_t rows = std::min(height, range.end - row);
      pack_panel(source, matrix, row, rows,
                 panels + static_cast<std::size_t>(row / height) * matrix.panel_bytes);
      if ((row + rows - kept) * source.stride >= kConsumedBytes || row + rows == range.end) {
        if (consumed_)
          consumed_({source.row(kept), static_cast<std::size_t>((row + rows - kept) * source.stride)});
        kept = row + rows;
      }
    }
  }

 private:
  void pack_panel(const TensorView& source, const PackedMatrix& matrix, std::int64_t row, std::int64_t rows,
                  std::byte* panel) const noexcept {
    const auto dtype = static_cast<std::size_t>(source.dtype);
    const PackBlocks pack_blocks = kernels_.pack_blocks[dtype];
    const PackedType own = packed_type_of(source.dtype);
    if (pack_blocks != nullptr && matrix.kernels == &kernels_.packed[static_cast<std::size_t>(own)]) {
      return pack_blocks(source.row(row), source.stride, rows, source.cols, panel);
    }
    for (std::int64_t r = 0; r < rows; ++r) {
      kernels_.widen[dtype](source.row(row + r), source.cols, rows_.data() + r * source.cols);
    }
    matrix.kernels->pack(rows_.data(), source.cols, rows, source.cols, panel);
  }

  const KernelTable& kernels_;
  const ConsumedHook& consumed_;
  std::span<float> rows_;  // [panel_rows, cols]
};

AlignedBuffer allocate_panels(std::size_t bytes) {
  try {
    return AlignedBuffer(bytes);
  } catch (const Error&) {
    throw Error(ErrorKind::memory, "not enough memory for the weights: " + std::to_string(bytes) +
                                       " bytes are needed; fewer bits need less (--weights q8 or q4)");
  }
}

/// Whether packing the first panels of some matrices gives what is there.
bool agrees(const Plan& plan, const KernelTable& kernels, const PanelLayout& layout, Bytes packed) {
  constexpr std::size_t kMost = 64;
  if (packed.size() != layout.bytes) return false;
  std::vector<float> rows(static_cast<std::size_t>(layout.most_floats));
  const ConsumedHook nothing;
  const Packer packer(kernels, nothing, rows);
  const std::size_t step = (layout.order.size() + kMost - 1) / kMost;
  for (std::size_t i = 0; i < layout.order.size(); i += step) {
    const PackedMatrix& matrix = layout.matrices[static_cast<std::size_t>(layout.order[i])];
    AlignedBuffer panel(matrix.panel_bytes);
    packer.pack(plan.weight(layout.order[i]), matrix, {0, std::min(matrix.rows, matrix.kernels->panel_rows)},
                panel.data());
    const Bytes there = packed.subspan(layout.offsets[i], matrix.panel_bytes);
    if (!std::ranges::equal(there, Bytes(panel.data(), matrix.panel_bytes))) return false;
  }
  return true;
}

}  // namespace

PanelLayout::PanelLayout(const Plan& plan, const KernelTable& table, std::optional<PackedType> type)
    : kernels(table.name),
      order(matrices_in_order(plan)),
      matrices(plan.weights.size()),
      types(plan.weights.size(), PackedType::f32) {
  std::array<std::int64_t, kPackedTypes> numbers{};
  const std::vector<bool> routers = routers_of(plan);
  for (const WeightId id : order) {
    const auto at = static_cast<std::size_t>(id);
    const TensorView& view = plan.weight(id);
    types[at] = routers[at] ? router_type(view.dtype) : held_type(view.dtype, type);
    const PackedKernels& packed = table.packed[static_cast<std::size_t>(types[at])];
    numbers[static_cast<std::size_t>(types[at])] += view.rows * view.cols;
    offsets.push_back(bytes);
    matrices[at] = {&packed, nullptr, view.rows, view.cols, packed.panel_bytes(view.cols)};
    bytes += static_cast<std::size_t>(matrices[at].bytes());
    most_floats = std::max(most_floats, packed.panel_rows * view.cols);
  }
  most_used = static_cast<PackedType>(std::ranges::max_element(numbers) - numbers.begin());
}

std::string PanelLayout::text() const {
  std::string text = "kernels " + std::string(kernels) + '\n';
  for (const WeightId id : order) {
    const PackedMatrix& matrix = matrices[static_cast<std::size_t>(id)];
    const PackedType type = types[static_cast<std::size_t>(id)];
    text += std::string(packed_type_name(type)) + ' ' + std::to_string(static_cast<int>(type)) + ' ' +
            std::to_string(matrix.rows) + ' ' + std::to_string(matrix.cols) + ' ' +
            std::to_string(matrix.panel_bytes) + '\n';
  }
  return text;
}

PackedWeights::PackedWeights(const Plan& plan, const KernelTable& kernels, std::optional<PackedType> type,
                             ThreadTeam& team, const PackSource& source)
    : layout_(plan, kernels, type) {
  const bool found = agrees(plan, kernels, layout_, source.packed);
  if (!found) own_ = allocate_panels(layout_.bytes);
  memory_ = found ? source.packed : Bytes(own_.data(), own_.size());
  for (std::size_t i = 0; i < order().size(); ++i) {
    layout_.matrices[static_cast<std::size_t>(order()[i])].panels = memory_.data() + layout_.offsets[i];
  }
  if (!found) pack(plan, kernels, team, source.consumed);
}

void PackedWeights::pack(const Plan& plan, const KernelTable& kernels, ThreadTeam& team,
                         const ConsumedHook& consumed) {
  const auto floats = static_cast<std::size_t>(layout_.most_floats);
  AlignedBuffer rows(floats * static_cast<std::size_t>(team.size()) * sizeof(float));
  team.run([&](int member) {
    const Packer packer(kernels, consumed,
                        rows.as<float>().subspan(floats * static_cast<std::size_t>(member), floats));
    for (std::size_t i = 0; i < order().size(); ++i) {
      const PackedMatrix& matrix = (*this)[order()[i]];
      // Whoever packs a row touches its memory first and, by the same shares, reads it later.
      packer.pack(plan.weight(order()[i]), matrix,
                  share(matrix.rows, matrix.kernels->panel_rows, member, team.size()),
                  own_.data() + layout_.offsets[i]);
    }
  });
}

}  // namespace qgen
