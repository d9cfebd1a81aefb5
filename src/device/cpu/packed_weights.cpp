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

}  // namespace

PackedWeights::PackedWeights(const Plan& plan, const KernelTable& kernels, std::optional<PackedType> type,
                             ThreadTeam& team, const ConsumedHook& consumed)
    : order_(matrices_in_order(plan)), matrices_(plan.weights.size()) {
  std::size_t bytes = 0;
  std::int64_t most_floats = 0;
  std::vector<std::size_t> offsets;
  std::array<std::int64_t, kPackedTypes> numbers{};
  const std::vector<bool> routers = routers_of(plan);
  for (const WeightId id : order_) {
    const TensorView& view = plan.weight(id);
    const PackedType held =
        routers[static_cast<std::size_t>(id)] ? router_type(view.dtype) : held_type(view.dtype, type);
    const PackedKernels& packed = kernels.packed[static_cast<std::size_t>(held)];
    const std::int64_t panels = (view.rows + packed.panel_rows - 1) / packed.panel_rows;
    numbers[static_cast<std::size_t>(held)] += view.rows * view.cols;
    offsets.push_back(bytes);
    matrices_[static_cast<std::size_t>(id)] = {&packed, nullptr, view.rows, view.cols,
                                               packed.panel_bytes(view.cols)};
    bytes += static_cast<std::size_t>(panels) * packed.panel_bytes(view.cols);
    most_floats = std::max(most_floats, packed.panel_rows * view.cols);
  }
  type_ = static_cast<PackedType>(std::ranges::max_element(numbers) - numbers.begin());

  memory_ = allocate_panels(bytes);
  AlignedBuffer rows(static_cast<std::size_t>(most_floats * team.size()) * sizeof(float));
  for (std::size_t i = 0; i < order_.size(); ++i) {
    matrices_[static_cast<std::size_t>(order_[i])].panels = memory_.data() + offsets[i];
  }
  team.run([&](int member) {
    const Packer packer(kernels, consumed,
                        rows.as<float>().subspan(static_cast<std::size_t>(most_floats * member),
                                                 static_cast<std::size_t>(most_floats)));
    for (std::size_t i = 0; i < order_.size(); ++i) {
      const PackedMatrix& matrix = (*this)[order_[i]];
      // Whoever packs a row touches its memory first and, by the same shares, reads it later.
      packer.pack(plan.weight(order_[i]), matrix,
                  share(matrix.rows, matrix.kernels->panel_rows, member, team.size()),
                  memory_.data() + offsets[i]);
    }
  });
}

}  // namespace qgen
