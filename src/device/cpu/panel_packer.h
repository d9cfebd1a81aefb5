#pragma once

#include <cstdint>
#include <span>
#include <utility>

#include "device/cpu/share.h"
#include "qgen/device/device.h"
#include "qgen/kernels/kernel_table.h"
#include "qgen/tensor/tensor_view.h"

namespace qgen {

/// Where the numbers of a packed matrix come from: W[rows, cols] as a file has it, column j times columns[j]
/// and row i divided by rows[i] where those are given.
struct MatrixSource {
  const TensorView* view = nullptr;
  const float *columns = nullptr, *rows = nullptr;
};

/// Packs panels. For use by several threads at once.
class PanelPacker {
 public:
  /// `kernels` must outlive it.
  PanelPacker(const KernelTable& kernels, ConsumedHook consumed)
      : kernels_(kernels), consumed_(std::move(consumed)) {}

  /// Packs rows of `range`, which begins with a panel, one panel after the other to `panels`. `scratch`:
  /// [panel_rows, cols], private to the calling thread.
  void pack(const MatrixSource& source, const PackedKernels& to, Range range, std::span<float> scratch,
            std::byte* panels) const noexcept;
  /// Lets pages of these rows be given back.
  void release(const MatrixSource& source, Range range) const noexcept;

 private:
  void pack_panel(const MatrixSource& source, const PackedKernels& to, Range rows, std::span<float> scratch,
                  std::byte* panel) const noexcept;

  const KernelTable& kernels_;
  ConsumedHook consumed_;
};

}  // namespace qgen
