#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/cpu/thread_team.h"
#include "qgen/base/aligned_buffer.h"
#include "qgen/device/device.h"
#include "qgen/kernels/kernel_table.h"
#include "qgen/plan/plan.h"

namespace qgen {

/// W[rows, cols] as panels.
struct PackedMatrix {
  const PackedKernels* kernels = nullptr;
  const std::byte* panels = nullptr;
  std::int64_t rows = 0, cols = 0;
  std::size_t panel_bytes = 0;

  [[nodiscard]] std::int64_t bytes() const noexcept {
    return (rows + kernels->panel_rows - 1) / kernels->panel_rows * static_cast<std::int64_t>(panel_bytes);
  }
  /// The panel that begins with `row`, a multiple of panel_rows.
  [[nodiscard]] const std::byte* panel(std::int64_t row) const noexcept {
    return panels + static_cast<std::size_t>(row / kernels->panel_rows) * panel_bytes;
  }
};

/// Where all matrices of a plan that are multiplied by lie in one piece of memory, in the order in which a
/// step reads them.
struct PanelLayout {
  /// `type`: how to hold them, one that can be packed from floats, or nothing: each by packed_type_of() its
  /// type. Routers are held as floats in any case.
  PanelLayout(const Plan& plan, const KernelTable& kernels, std::optional<PackedType> type);

  /// The kernels and each matrix's type and size, a line each.
  [[nodiscard]] std::string text() const;

  std::string_view kernels;
  std::vector<WeightId> order;
  std::vector<PackedMatrix> matrices;  ///< by WeightId, without panels; empty where a weight is no matrix
  std::vector<PackedType> types;       ///< likewise
  std::vector<std::size_t> offsets;    ///< in that order
  std::size_t bytes = 0;
  std::int64_t most_floats = 0;            ///< of the rows of one panel
  PackedType most_used = PackedType::f32;  ///< how most of the weights are held
};

/// Where packed weights come from besides the plan; see DeviceOptions.
struct PackSource {
  ConsumedHook consumed;
  Bytes packed;
};

/// All matrices of a plan that are multiplied by, repacked into one piece of memory, or found packed.
class PackedWeights {
 public:
  /// See PanelLayout. Throws Error{memory}.
  PackedWeights(const Plan& plan, const KernelTable& kernels, std::optional<PackedType> type,
                ThreadTeam& team, const PackSource& source);

  [[nodiscard]] const PackedMatrix& operator[](WeightId id) const noexcept {
    return layout_.matrices[static_cast<std::size_t>(id)];
  }
  /// In the order of a step.
  [[nodiscard]] const std::vector<WeightId>& order() const noexcept { return layout_.order; }
  /// Bytes of all panels: what a step reads that needs every matrix.
  [[nodiscard]] std::int64_t bytes() const noexcept { return std::ssize(memory_); }
  /// All panels, one after the other.
  [[nodiscard]] Bytes memory() const noexcept { return memory_; }
  /// How most of the weights are held.
  [[nodiscard]] PackedType type() const noexcept { return layout_.most_used; }

 private:
  void pack(const Plan& plan, const KernelTable& kernels, ThreadTeam& team, const ConsumedHook& consumed);

  PanelLayout layout_;  // its matrices with their panels
  AlignedBuffer own_;   // unless they were found
  Bytes memory_;
};

}  // namespace qgen
