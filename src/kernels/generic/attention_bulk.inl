// Attention of many queries to one chunk of the cache (see attention.inl) in bf16, two products at a time: P
// multiplies pairs. Keys and values are packed to pairs, of dimensions and of positions, and used for all
// queries; scores and the softmax between are floats.

/// Working memory of a call, in 32-bit pairs.
struct PairMemory {
  explicit PairMemory(const AttendArgs& a)
      : dimensions((a.head_dim + 1) / 2),
        padded(round_up(a.head_dim, kLanes)),
        keys(a.scratch + kAttendQueries * kKvChunk),
        values(keys + kKvChunk / 2 * padded),
        queries(values + kKvChunk / 2 * padded),
        weights(queries + kAttendQueries / 2 * padded) {}

  std::int64_t dimensions;  ///< pairs of them
  std::int64_t padded;      ///< head_dim
  float* keys;              ///< [kKvChunk / kLanes][dimensions][kLanes]
  float* values;            ///< [kKvChunk / 2][padded]
  float* queries;           ///< [kAttendQueries][padded / 2]
  float* weights;           ///< [kAttendQueries][kKvChunk / 2]
};

/// Y[j][i] = sum over k of factors[j][k] * rows[k][i], i counting vectors.
struct PairOperands {
  const float* factors;
  std::int64_t factor_stride;
  const float* rows;
  std::int64_t row_stride, vector_stride, count;
};

/// Calls store(j, i, sum) for `queries` by `vectors` sums.
template <class P, class Store>
void pair_products(const PairOperands& o, std::int64_t queries, std::int64_t vectors, const Store& store) {
  constexpr int kVectors = 4;
  const auto tile = [&]<int Queries, int Vectors>(std::int64_t query, std::int64_t vector) {
    Grid<Queries, Vectors> sums = {};
    const float* rows = o.rows + vector * o.vector_stride;
    const float* factors = o.factors + query * o.factor_stride;
    for (std::int64_t k = 0; k < o.count; ++k) {
      Row<Vectors> row;
      QGEN_UNROLL
      for (int i = 0; i < Vectors; ++i) row[i] = load(rows + k * o.row_stride + i * o.vector_stride);
      QGEN_UNROLL
      for (int j = 0; j < Queries; ++j) {
        const V factor = set(factors[j * o.factor_stride + k]);
        QGEN_UNROLL
        for (int i = 0; i < Vectors; ++i) sums[j][i] = P::multiply_add(row[i], factor, sums[j][i]);
      }
    }
    QGEN_UNROLL
    for (int j = 0; j < Queries; ++j) {
      QGEN_UNROLL
      for (int i = 0; i < Vectors; ++i) store(query + j, vector + i, sums[j][i]);
    }
  };
  for (std::int64_t vector = 0; vector < vectors; vector += kVectors) {
    for (std::int64_t query = 0; query < queries; query += kQueryTile) {
      with_constant<kVectors>(std::min<std::int64_t>(kVectors, vectors - vector), [&](auto width) {
        with_constant<kQueryTile>(std::min<std::int64_t>(kQueryTile, queries - query), [&](auto height) {
          tile.template operator()<decltype(height)::value, decltype(width)::value>(query, vector);
        });
      });
    }
  }
}

template <class T, class P>
void pack_keys(const AttendArgs& a, const PairMemory& m, std::int64_t positions) {
  const std::byte* k = a.chunk.k;
  float* to = m.keys;
  for (std::int64_t p = 0; p < positions; p += kLanes) {
    for (std::int64_t d = 0; d < a.head_dim; d += 2, k += 2 * kLanes * T::kBytes, to += kLanes) {
      store(to, P::pair(T::load(k), T::load(k + kLanes * T::kBytes)));
    }
  }
}

template <class T, class P>
void pack_values(const AttendArgs& a, const PairMemory& m, std::int64_t positions) {
  for (std::int64_t p = 0; p < positions; p += 2) {
    for (std::int64_t d = 0; d < a.head_dim; d += kLanes) {
      const std::int64_t n = a.head_dim - d;
      const std::byte* v = a.chunk.v + (p * a.head_dim + d) * T::kBytes;
      // What lies beyond the last position may be anything.
      const V odd = p + 1 < positions ? load_up_to<T>(v + a.head_dim * T::kBytes, n) : zero();
      store(m.values + p / 2 * m.padded + d, P::pair(load_up_to<T>(v, n), odd));
    }
  }
}

/// `count` floats as pairs.
template <class P>
void pack_row(const float* from, std::int64_t count, float* to) {
  for (std::int64_t i = 0; i < count; i += 2 * kLanes, to += kLanes) {
    store_up_to(to, P::load_input(from + i, count - i), (count - i + 1) / 2);
  }
}

template <class T, class P>
void attend_bulk(const AttendArgs& a) noexcept {
  static_assert(kLanes == kKvLanes);
  const PairMemory m(a);
  const std::int64_t positions = *std::max_element(a.visible, a.visible + a.queries);
  const std::int64_t blocks = round_up(positions, kLanes) / kLanes;
  pack_keys<T, P>(a, m, positions);
  pack_values<T, P>(a, m, positions);
  for (std::int64_t j = 0; j < a.queries; ++j) {
    pack_row<P>(a.q + j * a.q_stride, a.head_dim, m.queries + j * m.padded / 2);
  }
  pair_products<P>({m.queries, m.padded / 2, m.keys, kLanes, m.dimensions * kLanes, m.dimensions}, a.queries,
                   blocks, [&](std::int64_t j, std::int64_t i, V scores) {
                     if constexpr (kScaled<T>) scores = scores * load(a.chunk.k_scale + i * kLanes);
                     store(a.scratch + j * kKvChunk + i * kLanes, scores);
                   });
  for (std::int64_t j = 0; j < a.queries; ++j) {
    softmax<T>(a, j);
    float* weights = a.scratch + j * kKvChunk;
    std::fill(weights + a.visible[j], weights + blocks * kLanes, 0.0f);
    pack_row<P>(weights, blocks * kLanes, m.weights + j * kKvChunk / 2);
  }
  pair_products<P>({m.weights, kKvChunk / 2, m.values, m.padded, kLanes, (positions + 1) / 2}, a.queries,
                   m.padded / kLanes, [&](std::int64_t j, std::int64_t i, V sums) {
                     store_up_to(a.out + j * a.out_stride + i * kLanes, sums, a.head_dim - i * kLanes);
                   });
}
