#include "device/cpu/panel_packer.h"

#include <algorithm>

namespace qgen {

void PanelPacker::pack(const MatrixSource& source, const PackedKernels& to, Range range,
                       std::span<float> scratch, std::byte* panels) const noexcept {
  const std::size_t panel_bytes = to.panel_bytes(source.view->cols);
  for (std::int64_t row = range.begin; row < range.end; row += to.panel_rows) {
    pack_panel(source, to, {row, std::min(row + to.panel_rows, range.end)}, scratch, panels);
    panels += panel_bytes;
  }
}

void PanelPacker::release(const MatrixSource& source, Range range) const noexcept {
  const TensorView& view = *source.view;
  if (!consumed_ || range.begin >= range.end) return;
  consumed_({view.row(range.begin), static_cast<std::size_t>((range.end - range.begin) * view.stride)});
}

void PanelPacker::pack_panel(const MatrixSource& source, const PackedKernels& to, Range rows,
                             std::span<float> scratch, std::byte* panel) const noexcept {
  const TensorView& view = *source.view;
  const auto dtype = static_cast<std::size_t>(view.dtype);
  const PackBlocks pack_blocks = kernels_.pack_blocks[dtype];
  if (pack_blocks != nullptr &&
      &to == &kernels_.packed[static_cast<std::size_t>(packed_type_of(view.dtype))]) {
    return pack_blocks(view.row(rows.begin), view.stride, rows.end - rows.begin, view.cols, panel);
  }
  for (std::int64_t row = rows.begin; row < rows.end; ++row) {
    float* w = scratch.data() + (row - rows.begin) * view.cols;
    kernels_.widen[dtype](view.row(row), view.cols, w);
    if (source.columns != nullptr) kernels_.mul(source.columns, view.cols, w);
    if (source.rows != nullptr) kernels_.scale(w, 1 / source.rows[row], view.cols, w);
  }
  to.pack(scratch.data(), view.cols, rows.end - rows.begin, view.cols, panel);
}

}  // namespace qgen
