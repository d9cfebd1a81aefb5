// Panels of float weights: kLanes rows, all columns, filled up with zeros to a multiple of kPanelColumns.
//
// Lane = row: a vector holds one column of kLanes rows, so that sums need no folding. f32 and f16 lie
// [column][row]. bf16 lies [pair of columns][row][2], so that 32 bits hold what VDPBF16PS multiplies at a
// time; with sixteen rows, 32 columns are one B tile of AMX.

/// As many that every panel is whole cache lines and every kernel's step fits, so that loops have no tails.
inline constexpr std::int64_t kPanelColumns = 32;

inline std::int64_t panel_columns(std::int64_t cols) {
  return round_up(cols, kPanelColumns);
}

template <class W>
std::size_t panel_bytes(std::int64_t cols) noexcept {
  return static_cast<std::size_t>(panel_columns(cols) * kLanes * W::kBytes);
}

/// Of kernels that need no scratch memory.
inline std::size_t no_scratch_bytes(std::int64_t) noexcept {
  return 0;
}

/// Columns of kLanes rows, of which `rows` and `cols` are there (cols may even be negative): zeros beyond.
inline void load_block(const float* w, std::int64_t stride, std::int64_t rows, std::int64_t cols,
                       V (&block)[kLanes]) {
  if (rows == kLanes && cols >= kLanes) {
    QGEN_UNROLL
    for (std::int64_t i = 0; i < kLanes; ++i) block[i] = load(w + i * stride);
    return;
  }
  for (std::int64_t i = 0; i < kLanes; ++i) {
    block[i] = i < rows && cols > 0 ? load_up_to(w + i * stride, cols) : zero();
  }
}

template <class W>
void pack_panel(const float* w, std::int64_t stride, std::int64_t rows, std::int64_t cols,
                std::byte* panel) noexcept {
  for (std::int64_t c = 0; c < panel_columns(cols); c += kLanes) {
    V block[kLanes];
    load_block(w + c, stride, rows, cols - c, block);
    transpose(block);
    QGEN_UNROLL
    for (std::int64_t i = 0; i < kLanes; i += 2) {
      W::store_pair(panel + (c + i) * kLanes * W::kBytes, block[i], block[i + 1]);
    }
  }
}
