#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "device/cpu/balance.h"
#include "device/cpu/panel_packer.h"
#include "device/cpu/thread_team.h"
#include "qgen/base/aligned_buffer.h"
#include "qgen/device/device.h"
#include "qgen/kernels/kernel_table.h"
#include "qgen/plan/plan.h"

namespace qgen {

/// W[rows, cols] as panels.
struct PackedMatrix {
  WeightId id = kNoWeight;
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
/// step reads them, followed by the factors of balanced inputs.
struct PanelLayout {
  /// `type`: how to hold them, one that can be packed from floats, or nothing: each by packed_type_of() its
  /// type. Routers are held as floats in any case.
  PanelLayout(const Plan& plan, const KernelTable& kernels, std::optional<PackedType> type);

  /// The kernels, each matrix's type and size and each balanced input, a line each.
  [[nodiscard]] std::string text() const;

  std::string_view kernels;
  std::vector<WeightId> order;
  std::vector<PackedMatrix> matrices;  ///< by WeightId, without panels; empty where a weight is no matrix
  std::vector<PackedType> types;       ///< likewise
  std::vector<std::size_t> offsets;    ///< in that order
  std::size_t panel_bytes = 0;         ///< of all panels
  std::vector<BalancedInput> balanced;
  std::vector<std::size_t> factor_offsets;  ///< of their factors: [cols] floats each
  std::size_t bytes = 0;                    ///< of it all
  std::int64_t most_floats = 0;             ///< of the rows of one panel
  PackedType most_used = PackedType::f32;   ///< how most of the weights are held
};

/// By WeightId, or nullptr: see MatrixSource and BalancedInput.
struct PlacedFactors {
  /// Where they lie in packed weights that begin there.
  PlacedFactors(const PanelLayout& layout, const std::byte* memory);

  std::vector<const float*> columns;   ///< of matrices
  std::vector<const float*> divisors;  ///< of norms and of rows of up_proj
};

/// Whether `packed` has that layout, and packing the first panels of some matrices gives what is there.
bool is_packed_form(Bytes packed, const PanelLayout& layout, const Plan& plan, const KernelTable& kernels);

/// Where packed weights come from besides the plan; see DeviceOptions.
struct PackSource {
  ConsumedHook consumed;
  Bytes packed;
};

/// All matrices of a plan that are multiplied by, repacked into one piece of memory, or found packed.
class PackedWeights {
 public:
  /// See PanelLayout; `plan` and `kernels` must outlive it. Throws Error{memory}.
  PackedWeights(const Plan& plan, const KernelTable& kernels, std::optional<PackedType> type,
                PackSource source);

  [[nodiscard]] const PackedMatrix& operator[](WeightId id) const noexcept {
    return layout_.matrices[static_cast<std::size_t>(id)];
  }
  /// In the order of a step.
  [[nodiscard]] const std::vector<WeightId>& order() const noexcept { return layout_.order; }
  /// Bytes of all panels: what a step reads that needs every matrix.
  [[nodiscard]] std::int64_t bytes() const noexcept { return static_cast<std::int64_t>(layout_.panel_bytes); }
  /// All panels, one after the other, and factors.
  [[nodiscard]] Bytes memory() const noexcept { return memory_; }
  /// How most of the weights are held.
  [[nodiscard]] PackedType type() const noexcept { return layout_.most_used; }
  [[nodiscard]] const std::vector<BalancedInput>& balanced() const noexcept { return layout_.balanced; }
  /// What a norm's weights, or rows of an up_proj, are divided by, or nullptr.
  [[nodiscard]] const float* divisors(WeightId id) const noexcept {
    return factors_.divisors[static_cast<std::size_t>(id)];
  }

  /// Whether they were found packed. If not, they are to be packed before use.
  [[nodiscard]] bool found() const noexcept { return own_.size() == 0; }
  /// Sets the factors of one of balanced(), until then 1. Not while members pack.
  void set_factors(std::size_t input, std::span<const float> factors);
  /// Packs rows that begin with a panel; members may pack at once what differs. `scratch`: scratch_floats().
  void pack_rows(WeightId id, Range rows, std::span<float> scratch) noexcept;
  [[nodiscard]] std::int64_t scratch_floats() const noexcept { return layout_.most_floats; }
  /// Packs every matrix of which not all rows are packed, or of which factors were set later.
  void pack(ThreadTeam& team);

 private:
  const Plan& plan_;
  PanelPacker packer_;
  PanelLayout layout_;  // its matrices with their panels
  AlignedBuffer own_;   // unless they were found
  Bytes memory_;
  PlacedFactors factors_;
  std::vector<std::atomic<std::int64_t>> rows_packed_;  // by WeightId
};

}  // namespace qgen
