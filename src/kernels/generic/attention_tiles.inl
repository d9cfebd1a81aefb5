// Attention of many queries to one chunk of the cache (see attention.inl) by bf16 tiles (see tiles.inl).
// Keys, and values the other way round, are packed as panels of weights are, and used for all queries, which
// are inputs, as softmax is; scores and the softmax between are floats.

/// Working memory of a call, after the scores.
struct TileMemory {
  explicit TileMemory(const AttendArgs& a)
      : keys(reinterpret_cast<std::byte*>(a.scratch + kAttendQueries * kKvChunk)),
        values(keys + kKvChunk * panel_columns(a.head_dim) * Bf16::kBytes),
        queries(values + kKvChunk * round_up(a.head_dim, kLanes) * Bf16::kBytes),
        weights(queries + kAttendQueries * panel_columns(a.head_dim) * Bf16::kBytes) {}

  std::byte* keys;     ///< panels of kLanes positions, a column for each dimension
  std::byte* values;   ///< panels of kLanes dimensions, a column for each position
  std::byte* queries;  ///< A tiles
  std::byte* weights;  ///< A tiles
};

/// Bytes of two columns of a panel.
inline constexpr std::int64_t kColumnPairBytes = 2 * kLanes * Bf16::kBytes;

template <class T, class Rounding>
void pack_key_panels(const AttendArgs& a, std::int64_t positions, std::byte* to) {
  const std::byte* k = a.chunk.k;
  const std::int64_t beyond = (panel_columns(a.head_dim) - a.head_dim) * kLanes * Bf16::kBytes;
  for (std::int64_t p = 0; p < positions; p += kLanes) {
    for (std::int64_t d = 0; d < a.head_dim; d += 2) {
      Rounding::store_pair(to, T::load(k), T::load(k + kLanes * T::kBytes));
      k += 2 * kLanes * T::kBytes;
      to += kColumnPairBytes;
    }
    std::fill_n(to, beyond, std::byte{});
    to += beyond;
  }
}

/// What lies beyond the last position may be anything and becomes zeros.
template <class T, class Rounding>
void pack_value_panels(const AttendArgs& a, std::int64_t positions, std::byte* to) {
  const std::int64_t panel = panel_columns(positions) * kLanes * Bf16::kBytes;
  for (std::int64_t p = 0; p < panel_columns(positions); p += 2, to += kColumnPairBytes) {
    for (std::int64_t d = 0; d < a.head_dim; d += kLanes) {
      const std::byte* v = a.chunk.v + (p * a.head_dim + d) * T::kBytes;
      const std::int64_t n = a.head_dim - d;
      const V even = p < positions ? load_up_to<T>(v, n) : zero();
      const V odd = p + 1 < positions ? load_up_to<T>(v + a.head_dim * T::kBytes, n) : zero();
      Rounding::store_pair(to + d / kLanes * panel, even, odd);
    }
  }
}

/// Softmax of a query's scores, zeros from what it sees to `positions`.
template <class T>
void tile_softmax(const AttendArgs& a, std::int64_t query, std::int64_t positions) {
  float* scores = a.scratch + query * kKvChunk;
  for (std::int64_t p = 0; kScaled<T> && p < a.visible[query]; p += kLanes) {
    store(scores + p, load(scores + p) * load(a.chunk.k_scale + p));
  }
  softmax<T>(a, query);
  std::fill(scores + a.visible[query], scores + positions, 0.0f);
}

template <class T, class Rounding, class Tiles>
void tile_attend(Tiles& registers, const AttendArgs& a) {
  static_assert(kLanes == kKvLanes && kLanes == kTileRows);
  const TileMemory m(a);
  const std::int64_t positions = *std::max_element(a.visible, a.visible + a.queries);
  pack_key_panels<T, Rounding>(a, positions, m.keys);
  pack_value_panels<T, Rounding>(a, positions, m.values);
  tile_prepare<Rounding, false>(a.q, a.q_stride, 0, a.queries, a.head_dim, m.queries);
  tile_multiply(registers, {m.keys, round_up(positions, kLanes), a.head_dim, m.queries, a.queries, a.scratch,
                            kKvChunk, nullptr});
  for (std::int64_t j = 0; j < a.queries; ++j) tile_softmax<T>(a, j, positions);
  tile_prepare<Rounding, false>(a.scratch, kKvChunk, 0, a.queries, positions, m.weights);
  tile_multiply(registers,
                {m.values, a.head_dim, positions, m.weights, a.queries, a.out, a.out_stride, nullptr});
}
