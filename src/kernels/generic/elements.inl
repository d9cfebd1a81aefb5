// Element types of weights and of the cache, over the vocabulary: how many bytes, how to load and store a
// vector of them, whole or in part. All are widened to float without rounding.

inline V load_f32(const void* from) {
  return load(from);
}

inline void store_f32(void* to, V v) {
  store(to, v);
}

/// Two neighbouring columns of kLanes rows in a panel (see panels.inl): one vector after the other.
template <class T>
struct ColumnPair {
  /// The even (0) or the odd (1) one.
  static V load_of_pair(const std::byte* from, int which) {
    return T::load(from + which * kLanes * T::kBytes);
  }
  static void store_pair(std::byte* to, V even, V odd) {
    T::store(to, even);
    T::store(to + kLanes * T::kBytes, odd);
  }
};

struct F32 : ColumnPair<F32> {
  static constexpr std::int64_t kBytes = 4;
  static V load(const void* from) { return load_f32(from); }
  static void store(void* to, V v) { store_f32(to, v); }
};

struct F16 : ColumnPair<F16> {
  static constexpr std::int64_t kBytes = 2;
  static V load(const void* from) { return load_f16(from); }
  static void store(void* to, V v) { store_f16(to, v); }
};

struct Bf16 {
  static constexpr std::int64_t kBytes = 2;
  static V load(const void* from) { return load_bf16(from); }
  static void store(void* to, V v) { store_bf16(to, v); }
  /// The two columns of each row lie side by side: the order of VDPBF16PS and of AMX tiles.
  static V load_of_pair(const std::byte* from, int which) {
    return which == 0 ? low_bf16(load_f32(from)) : high_bf16(load_f32(from));
  }
  static void store_pair(std::byte* to, V even, V odd) { store_f32(to, pair_bf16(even, odd)); }
};

/// Vectors that live in registers once the loops over them are unrolled.
template <int N>
using Row = V[static_cast<std::size_t>(N)];
template <int M, int N>
using Grid = V[static_cast<std::size_t>(M)][static_cast<std::size_t>(N)];

/// The first n elements (below kLanes) at `from`, zeros after them.
template <class T>
V load_part(const void* from, std::int64_t n) {
  alignas(64) std::byte whole[kLanes * T::kBytes] = {};
  std::memcpy(whole, from, static_cast<std::size_t>(n * T::kBytes));
  return T::load(whole);
}

/// Writes the first n lanes of v, n below kLanes.
template <class T>
void store_part(void* to, V v, std::int64_t n) {
  alignas(64) std::byte whole[kLanes * T::kBytes];
  T::store(whole, v);
  std::memcpy(to, whole, static_cast<std::size_t>(n * T::kBytes));
}

/// As load_part, for any n: at most kLanes of them.
template <class T = F32>
V load_up_to(const void* from, std::int64_t n) {
  return n >= kLanes ? T::load(from) : load_part<T>(from, n);
}

/// As store_part, for any n: at most kLanes of them.
template <class T = F32>
void store_up_to(void* to, V v, std::int64_t n) {
  n >= kLanes ? T::store(to, v) : store_part<T>(to, v, n);
}

inline std::int64_t round_up(std::int64_t n, std::int64_t multiple) {
  return (n + multiple - 1) / multiple * multiple;
}

/// Calls f with n, 1..N, as a constant.
template <int N, class Function>
void with_constant(std::int64_t n, const Function& f) {
  if (n == N) {
    f(std::integral_constant<int, N>{});
  } else if constexpr (N > 1) {
    with_constant<N - 1>(n, f);
  }
}
