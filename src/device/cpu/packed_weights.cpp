#include "device/cpu/packed_weights.h"

#include <algorithm>
#include <array>
#include <string>
#include <utility>

#include "device/cpu/share.h"
#include "qgen/base/error.h"

namespace qgen {
namespace {

std::vector<WeightId> matrices_in_order(const Plan& plan) {
  // A plan may use a matrix twice.
  std::vector<bool> seen(plan.weights.size());
  std::vector<WeightId> once;
  for (const Stage& stage : plan.stages) {
    for (const WeightId id : matrices_of(stage)) {
      if (!seen[static_cast<std::size_t>(id)]) once.push_back(id);
      seen[static_cast<std::size_t>(id)] = true;
    }
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

/// To be filled, unless they were found.
AlignedBuffer allocate(std::size_t bytes, bool found) {
  if (found) return {};
  try {
    return AlignedBuffer(bytes);
  } catch (const Error&) {
    throw Error(ErrorKind::memory, "not enough memory for the weights: " + std::to_string(bytes) +
                                       " bytes are needed; fewer bits need less (--weights q8 or q4)");
  }
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
    offsets.push_back(panel_bytes);
    matrices[at] = {id, &packed, nullptr, view.rows, view.cols, packed.panel_bytes(view.cols)};
    panel_bytes += static_cast<std::size_t>(matrices[at].bytes());
    most_floats = std::max(most_floats, packed.panel_rows * view.cols);
  }
  most_used = static_cast<PackedType>(std::ranges::max_element(numbers) - numbers.begin());
  balanced = balanced_inputs(plan, types);
  bytes = panel_bytes;
  for (const BalancedInput& input : balanced) {
    factor_offsets.push_back(bytes);
    bytes += static_cast<std::size_t>(input.cols) * sizeof(float);
  }
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
  for (const BalancedInput& input : balanced) {
    text +=
        "balanced input of stage " + std::to_string(input.stage) + ' ' + std::to_string(input.cols) + '\n';
  }
  return text;
}

PlacedFactors::PlacedFactors(const PanelLayout& layout, const std::byte* memory)
    : columns(layout.matrices.size()), divisors(layout.matrices.size()) {
  for (std::size_t i = 0; i < layout.balanced.size(); ++i) {
    const BalancedInput& input = layout.balanced[i];
    const auto* factors = reinterpret_cast<const float*>(memory + layout.factor_offsets[i]);
    for (const WeightId id : input.matrices) columns[static_cast<std::size_t>(id)] = factors;
    divisors[static_cast<std::size_t>(input.norm != kNoWeight ? input.norm : input.up)] = factors;
  }
}

bool is_packed_form(Bytes packed, const PanelLayout& layout, const Plan& plan, const KernelTable& kernels) {
  constexpr std::size_t kMost = 64;
  if (packed.size() != layout.bytes) return false;
  const PlacedFactors factors(layout, packed.data());
  std::vector<float> scratch(static_cast<std::size_t>(layout.most_floats));
  const PanelPacker packer(kernels, {});
  const std::size_t step = (layout.order.size() + kMost - 1) / kMost;
  for (std::size_t i = 0; i < layout.order.size(); i += step) {
    const auto at = static_cast<std::size_t>(layout.order[i]);
    const PackedMatrix& matrix = layout.matrices[at];
    AlignedBuffer panel(matrix.panel_bytes);
    packer.pack({&plan.weight(layout.order[i]), factors.columns[at], factors.divisors[at]}, *matrix.kernels,
                {0, std::min(matrix.rows, matrix.kernels->panel_rows)}, scratch, panel.data());
    const Bytes there = packed.subspan(layout.offsets[i], matrix.panel_bytes);
    if (!std::ranges::equal(there, Bytes(panel.data(), matrix.panel_bytes))) return false;
  }
  return true;
}

PackedWeights::PackedWeights(const Plan& plan, const KernelTable& kernels, std::optional<PackedType> type,
                             PackSource source)
    : plan_(plan),
      packer_(kernels, std::move(source.consumed)),
      layout_(plan, kernels, type),
      own_(allocate(layout_.bytes, is_packed_form(source.packed, layout_, plan, kernels))),
      memory_(own_.size() == 0 ? source.packed : Bytes(own_.data(), own_.size())),
      factors_(layout_, memory_.data()),
      rows_packed_(plan.weights.size()) {
  for (std::size_t i = 0; i < order().size(); ++i) {
    layout_.matrices[static_cast<std::size_t>(order()[i])].panels = memory_.data() + layout_.offsets[i];
  }
  if (found()) return;
  for (std::size_t i = 0; i < balanced().size(); ++i) {
    set_factors(i, std::vector<float>(static_cast<std::size_t>(balanced()[i].cols), 1.0f));
  }
}

void PackedWeights::set_factors(std::size_t input, std::span<const float> factors) {
  std::ranges::copy(std::as_bytes(factors), own_.data() + layout_.factor_offsets[input]);
  const BalancedInput& of = balanced()[input];
  for (const WeightId id : of.matrices) rows_packed_[static_cast<std::size_t>(id)] = 0;
  if (of.up != kNoWeight) rows_packed_[static_cast<std::size_t>(of.up)] = 0;
}

void PackedWeights::pack_rows(WeightId id, Range rows, std::span<float> scratch) noexcept {
  constexpr std::int64_t kReleased = std::int64_t{4} << 20;  // source bytes after which pages are given back
  const auto at = static_cast<std::size_t>(id);
  const PackedMatrix& matrix = (*this)[id];
  const MatrixSource source{&plan_.weight(id), factors_.columns[at], factors_.divisors[at]};
  const std::int64_t height = matrix.kernels->panel_rows;
  const std::int64_t piece = (kReleased / source.view->stride + height) / height * height;
  for (std::int64_t row = rows.begin; row < rows.end; row += piece) {
    const Range some{row, std::min(row + piece, rows.end)};
    packer_.pack(source, *matrix.kernels, some, scratch, own_.data() + (matrix.panel(row) - memory_.data()));
    packer_.release(source, some);
  }
  rows_packed_[at] += rows.end - rows.begin;
}

void PackedWeights::pack(ThreadTeam& team) {
  std::vector<WeightId> left;
  for (const WeightId id : order()) {
    if (rows_packed_[static_cast<std::size_t>(id)] < (*this)[id].rows) left.push_back(id);
  }
  const auto floats = static_cast<std::size_t>(scratch_floats());
  AlignedBuffer scratch(floats * static_cast<std::size_t>(team.size()) * sizeof(float));
  team.run([&](int member) {
    const auto own = scratch.as<float>().subspan(floats * static_cast<std::size_t>(member), floats);
    for (const WeightId id : left) {
      const PackedMatrix& matrix = (*this)[id];
      // Whoever packs a row touches its memory first and, by the same shares, reads it later.
      pack_rows(id, share(matrix.rows, matrix.kernels->panel_rows, member, team.size()), own);
    }
  });
}

}  // namespace qgen
