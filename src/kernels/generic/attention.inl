// Attention of some queries to one chunk of the cache, in two passes: all scores, then softmax and the mix of
// the values. The keys lie by kKvLanes positions side by side, so that vectors of scores need no folding:
//   score[q, p] = sum over d of q[d] * k[p, d], one chain of multiply-adds over d
//   out[q, d] = sum over p of exp(score[q, p] - max) * v[p, d], one chain over p
// Tiles of queries share what is loaded of keys and values; every query's arithmetic is its own.

/// Queries in the largest tile.
inline constexpr int kQueryTile = 6;

/// Vectors of positions in a tile of scores, or of values in a tile of outputs, beside `queries` queries: as
/// many (eight at most, a power of two) as leave registers for themselves and for what is broadcast.
constexpr int attend_vectors(int queries) {
  int vectors = 8;
  while (vectors > 1 && (queries + 1) * vectors + 1 > kRegisters) vectors /= 2;
  return vectors;
}

/// Queries that read keys and values from memory, as in decoding; more of them find most in the cache.
constexpr bool few_queries(std::int64_t queries) {
  return queries <= 4;
}

/// For scores, where every block of positions is a stream of its own. Memory likes a single one; numbers of
/// one byte need several, as its chains of additions would not keep up.
constexpr int score_vectors(int queries, std::int64_t bytes) {
  const bool alone = few_queries(queries) && bytes > 1;
  return alone ? static_cast<int>(kKvLanes / kLanes) : std::min(attend_vectors(queries), 4);
}

/// How far ahead of the keys and values in use to prefetch, in bytes. The values follow the keys of a chunk.
inline constexpr std::int64_t kScoreAhead = 16384, kMixAhead = 8192;
/// Bytes of values prefetched with each vector of scores that softmax turns into factors.
inline constexpr std::int64_t kSoftmaxAhead = 128;

/// Cached numbers as signed bytes.
struct I8 {
  static constexpr std::int64_t kBytes = 1;
  static V load(const void* from) { return load_bytes(from); }
  /// A NaN becomes some byte: its scale tells.
  static void store(void* to, V v) { store_bytes(to, min(round(v), set(127.0f))); }
};

/// Whether vectors of this type carry a scale: f16 to have the range of a float, bytes to be of any use.
template <class T>
inline constexpr bool kScaled = std::is_same_v<T, F16> || std::is_same_v<T, I8>;

/// A power of two that brings x into the range of f16: 1 where x fits well, so that most vectors are stored
/// as they are. Infinities and NaN survive any scale.
inline float f16_scale(const float* x, std::int64_t n) {
  V highest = zero();
  for (std::int64_t i = 0; i < n; i += kLanes) highest = max(abs(load_up_to(x + i, n - i)), highest);
  const float top = largest(highest);
  if (top == 0 || (top >= 0x1p-14f && top <= 0x1p15f)) return 1.0f;
  // The largest becomes 2^14..2^15; the exponent of a subnormal float counts as the lowest.
  const auto exponent = static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(top) >> 23) - 127;
  const std::int32_t shift = std::max(exponent - 14, -126);
  return std::bit_cast<float>(static_cast<std::uint32_t>(shift + 127) << 23);
}

/// What the largest of x is 127 times of. 1 where x is all but zero, NaN where it is not finite.
inline float byte_scale(const float* x, std::int64_t n) {
  V highest = zero(), bad = zero();
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const V v = load_up_to(x + i, n - i);
    highest = max(abs(v), highest);
    bad = fma(v, zero(), bad);
  }
  if (!all_below(bad, 1.0f)) return std::numeric_limits<float>::quiet_NaN();
  const float top = largest(highest);
  return top < 0x1p-100f ? 1.0f : top / 127.0f;
}

template <class T>
float scale_of(const float* x, std::int64_t n) {
  return std::is_same_v<T, I8> ? byte_scale(x, n) : f16_scale(x, n);
}

template <class T>
void kv_store(const float* k, const float* v, std::int64_t head_dim, std::int64_t position,
              const KvChunk& chunk) noexcept {
  float k_factor = 1.0f, v_factor = 1.0f;
  if constexpr (kScaled<T>) {
    chunk.k_scale[position] = scale_of<T>(k, head_dim);
    chunk.v_scale[position] = scale_of<T>(v, head_dim);
    // Inverses of powers of two are exact; bytes are rounded anyway, and are of no meaning beside a NaN.
    k_factor = std::isnan(chunk.k_scale[position]) ? 0.0f : 1.0f / chunk.k_scale[position];
    v_factor = std::isnan(chunk.v_scale[position]) ? 0.0f : 1.0f / chunk.v_scale[position];
  }
  std::byte* keys = chunk.k + (position / kKvLanes * head_dim * kKvLanes + position % kKvLanes) * T::kBytes;
  std::byte* values = chunk.v + position * head_dim * T::kBytes;
  for (std::int64_t d = 0; d < head_dim; d += kLanes) {
    const std::int64_t n = std::min(kLanes, head_dim - d);
    store_up_to<T>(values + d * T::kBytes, load_up_to(v + d, n) * set(v_factor), n);
    alignas(64) std::byte narrow[kLanes * T::kBytes];
    T::store(narrow, load_up_to(k + d, n) * set(k_factor));
    for (std::int64_t i = 0; i < n; ++i) {
      std::memcpy(keys + (d + i) * kKvLanes * T::kBytes, narrow + i * T::kBytes, T::kBytes);
    }
  }
}

/// Scores of Queries queries for Vectors vectors of positions from `position` on.
template <class T, int Queries, int Vectors>
void score_tile(const AttendArgs& a, std::int64_t query, std::int64_t position) {
  const float* q = a.q + query * a.q_stride;
  std::array<const std::byte*, static_cast<std::size_t>(Vectors)> k;
  for (std::size_t i = 0; i < k.size(); ++i) {
    const std::int64_t p = position + static_cast<std::int64_t>(i) * kLanes;
    k[i] = a.chunk.k + (p / kKvLanes * a.head_dim * kKvLanes + p % kKvLanes) * T::kBytes;
  }
  constexpr int kBlockVectors = static_cast<int>(kKvLanes / kLanes);
  Grid<Queries, Vectors> sums = {};
  for (std::int64_t d = 0; d < a.head_dim; ++d) {
    Row<Vectors> keys;
    if (d * kKvLanes * T::kBytes % 64 == 0) {
      QGEN_UNROLL
      for (int i = 0; i < Vectors; i += kBlockVectors) {
        __builtin_prefetch(k[static_cast<std::size_t>(i)] + kScoreAhead + d * kKvLanes * T::kBytes);
      }
    }
    QGEN_UNROLL
    for (int i = 0; i < Vectors; ++i)
      keys[i] = T::load(k[static_cast<std::size_t>(i)] + d * kKvLanes * T::kBytes);
    QGEN_UNROLL
    for (int j = 0; j < Queries; ++j) {
      const V factor = set(q[j * a.q_stride + d]);
      QGEN_UNROLL
      for (int i = 0; i < Vectors; ++i) sums[j][i] = fma(factor, keys[i], sums[j][i]);
    }
  }
  QGEN_UNROLL
  for (int i = 0; i < Vectors; ++i) {
    const std::int64_t p = position + i * kLanes;
    QGEN_UNROLL
    for (int j = 0; j < Queries; ++j) {
      V scores = sums[j][i];
      if constexpr (kScaled<T>) scores = scores * load(a.chunk.k_scale + p);
      store(a.scratch + (query + j) * kKvChunk + p, scores);
    }
  }
}

/// Turns a query's scores into the factors of the values; sets its max and sum. `soon`: what to prefetch
/// meanwhile, or nothing.
template <class T>
void softmax(const AttendArgs& a, std::int64_t query, const std::byte* soon = nullptr) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float* scores = a.scratch + query * kKvChunk;
  const std::int64_t visible = a.visible[query], padded = round_up(visible, kLanes);
  std::fill(scores + visible, scores + padded, -kInfinity);
  V highest = set(-kInfinity);
  for (std::int64_t p = 0; p < padded; p += kLanes) highest = max(load(scores + p), highest);
  a.max[query] = largest(highest);
  V total = zero();
  for (std::int64_t p = 0; p < padded; p += kLanes) {
    for (std::int64_t i = 0; soon != nullptr && i < kSoftmaxAhead; i += 64) {
      __builtin_prefetch(soon + p / kLanes * kSoftmaxAhead + i);
    }
    V weights = exp(load(scores + p) - set(a.max[query]));
    total = total + weights;
    if constexpr (kScaled<T>) weights = weights * load(a.chunk.v_scale + p);
    store(scores + p, weights);
  }
  a.sum[query] = sum(total);
}

/// Adds positions [begin, end) to the outputs of Queries queries: Vectors vectors from d on, or one that may
/// be partial.
template <class T, int Queries, int Vectors>
void mix_tile(const AttendArgs& a, std::int64_t query, std::int64_t begin, std::int64_t end, std::int64_t d) {
  const std::int64_t n = Vectors == 1 ? a.head_dim - d : kLanes;
  const float* weights = a.scratch + query * kKvChunk;
  const std::byte* v = a.chunk.v + d * T::kBytes;
  // With every position a line of the next chunk's keys: those that its scores will not ask for in time.
  const std::byte* next = query == 0 && d == 0 ? a.next : nullptr;
  float* out = a.out + query * a.out_stride + d;
  Grid<Queries, Vectors> sums;
  QGEN_UNROLL
  for (int j = 0; j < Queries; ++j) {
    QGEN_UNROLL
    for (int i = 0; i < Vectors; ++i) sums[j][i] = load_up_to(out + j * a.out_stride + i * kLanes, n);
  }
  for (std::int64_t p = begin; p < end; ++p) {
    QGEN_UNROLL
    for (std::int64_t i = 0; i < Vectors * kLanes * T::kBytes; i += 64) {
      __builtin_prefetch(v + p * a.head_dim * T::kBytes + kMixAhead + i);
    }
    if (next != nullptr) __builtin_prefetch(next + p * 64);
    Row<Vectors> values;
    QGEN_UNROLL
    for (int i = 0; i < Vectors; ++i) {
      values[i] = load_up_to<T>(v + (p * a.head_dim + i * kLanes) * T::kBytes, n);
    }
    QGEN_UNROLL
    for (int j = 0; j < Queries; ++j) {
      const V weight = set(weights[j * kKvChunk + p]);
      QGEN_UNROLL
      for (int i = 0; i < Vectors; ++i) sums[j][i] = fma(weight, values[i], sums[j][i]);
    }
  }
  QGEN_UNROLL
  for (int j = 0; j < Queries; ++j) {
    QGEN_UNROLL
    for (int i = 0; i < Vectors; ++i) store_up_to(out + j * a.out_stride + i * kLanes, sums[j][i], n);
  }
}

/// Scores from `position` to `end` in tiles of Vectors vectors, the rest in smaller ones.
template <class T, int Queries, int Vectors>
void score(const AttendArgs& a, std::int64_t query, std::int64_t position, std::int64_t end) {
  for (; position + Vectors * kLanes <= end; position += Vectors * kLanes) {
    score_tile<T, Queries, Vectors>(a, query, position);
  }
  if constexpr (Vectors > 1) score<T, Queries, Vectors / 2>(a, query, position, end);
}

/// Outputs from d on in tiles of Vectors vectors, the rest in smaller ones.
template <class T, int Queries, int Vectors>
void mix(const AttendArgs& a, std::int64_t query, std::int64_t begin, std::int64_t end, std::int64_t d) {
  for (; Vectors == 1 ? d < a.head_dim : d + Vectors * kLanes <= a.head_dim; d += Vectors * kLanes) {
    mix_tile<T, Queries, Vectors>(a, query, begin, end, d);
  }
  if constexpr (Vectors > 1) mix<T, Queries, Vectors / 2>(a, query, begin, end, d);
}

template <class T, int Queries>
void attend_tile(const AttendArgs& a, std::int64_t query) {
  const auto [least, most] = std::minmax_element(a.visible + query, a.visible + query + Queries);
  score<T, Queries, score_vectors(Queries, T::kBytes)>(a, query, 0, round_up(*most, kLanes));
  for (int j = 0; j < Queries; ++j) {
    // Scores have asked for the values up to kScoreAhead.
    constexpr std::int64_t kBytes = kKvChunk / kLanes * kSoftmaxAhead;
    softmax<T>(a, query + j, few_queries(a.queries) ? a.chunk.v + kScoreAhead + j * kBytes : nullptr);
    std::fill_n(a.out + (query + j) * a.out_stride, a.head_dim, 0.0f);
  }
  mix<T, Queries, attend_vectors(Queries)>(a, query, 0, *least, 0);
  for (int j = 0; j < Queries; ++j) {
    const std::int64_t visible = a.visible[query + j];
    if (visible > *least) mix<T, 1, attend_vectors(1)>(a, query + j, *least, visible, 0);
  }
}

/// Queries from `query` on in tiles of Queries, the rest in smaller ones.
template <class T, int Queries>
void attend_tiles(const AttendArgs& a, std::int64_t query) {
  for (; query + Queries <= a.queries; query += Queries) attend_tile<T, Queries>(a, query);
  if constexpr (Queries > 1) attend_tiles<T, Queries == kQueryTile ? 4 : Queries / 2>(a, query);
}

template <class T>
void attend(const AttendArgs& a) noexcept {
  attend_tiles<T, kQueryTile>(a, 0);
}

/// The sums tell whether anything was visible; a NaN in either part stays.
inline void merge(const float* out_b, float max_b, float sum_b, std::int64_t n, float* out_a, float* max_a,
                  float* sum_a) noexcept {
  if (sum_b == 0) return;
  const bool empty = *sum_a == 0;
  const float highest = empty || max_b > *max_a ? max_b : *max_a;
  const float factor_a = empty ? 0.0f : exp(*max_a - highest), factor_b = exp(max_b - highest);
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const V scaled_b = load_up_to(out_b + i, n - i) * set(factor_b);
    store_up_to(out_a + i, fma(load_up_to(out_a + i, n - i), set(factor_a), scaled_b), n - i);
  }
  *max_a = highest;
  *sum_a = *sum_a * factor_a + sum_b * factor_b;
}

template <class T>
constexpr KvKernels kv_kernels() {
  return {kv_store<T>, attend<T>, attend<T>};
}
