// What the processor can do at most, for comparison with what the kernels reach.

/// Bytes of one vector as integers, for reading without arithmetic on whatever lies there.
using Words = std::uint64_t __attribute__((vector_size(kLanes * sizeof(float))));

inline std::uint64_t probe_read(const std::byte* data, std::size_t bytes) noexcept {
  constexpr std::size_t kLine = 64, kAhead = 4096;
  Words seen = {};
  for (std::size_t i = 0; i < bytes; i += kLine) {
    __builtin_prefetch(data + i + kAhead);
    QGEN_UNROLL
    for (std::size_t j = 0; j < kLine; j += sizeof(Words)) {
      Words words;
      std::memcpy(&words, data + i + j, sizeof words);
      seen |= words;
    }
  }
  std::uint64_t all = 0;
  for (std::size_t i = 0; i < sizeof(Words) / sizeof all; ++i) all |= seen[i];
  return all;
}

/// Independent sums: enough to hide the latency of two operations a cycle, few enough for the registers.
inline constexpr int kProbeSums = kRegisters * 3 / 4;

/// Runs `rounds` times kProbeSums products of P, each of which counts `operations`.
template <class P>
double probe_products(std::int64_t rounds, double operations) {
  // Volatile, so that the compiler knows neither the operands nor whether the results are looked at.
  const volatile float small = 0x1p-20f;
  volatile float sink;
  const V w = set(small), x = set(small);
  V sums[kProbeSums];
  for (V& sum : sums) sum = set(small);
  for (std::int64_t i = 0; i < rounds; ++i) {
    QGEN_UNROLL
    for (int j = 0; j < kProbeSums; ++j) sums[j] = P::multiply_add(w, x, sums[j]);
  }
  V total = zero();
  QGEN_UNROLL
  for (int j = 0; j < kProbeSums; ++j) total = total + sums[j];
  sink = sum(total);
  static_cast<void>(sink);
  return static_cast<double>(rounds) * kProbeSums * operations;
}

inline double probe_f32(std::int64_t rounds) noexcept {
  return probe_products<FloatUnits<F32>>(rounds, 2.0 * kLanes);
}

/// Sums of four products of bytes in each lane.
struct ByteUnits {
  static V multiply_add(V w, V x, V y) {
    return reinterpret_cast<V>(
        ByteProducts::add(reinterpret_cast<I>(y), reinterpret_cast<I>(w), reinterpret_cast<I>(x)));
  }
};

/// For processors with one instruction for it.
inline double probe_int8(std::int64_t rounds) noexcept {
  return probe_products<ByteUnits>(rounds, 8.0 * kLanes);
}
