// X for panels of integers: rounded by groups, which lie in records of their own, to 15 bits, that is, two
// halves, or to 8, that is, one. With 8 bits the rounding of X costs more than twice as much accuracy as that
// of weights to 8 bits; the other half costs a second product, for which reading the weights leaves time.
// Weights of 4 bits lose far more than X then does, so very many tokens are rounded to 8 bits for them.

/// A number of X is its byte or, of two halves, kUpperByte times its upper byte plus its lower one. The power
/// of two lets a sum of products with upper bytes be shifted and go on with lower ones; by 256 a lower byte
/// might be 128, which is none.
inline constexpr int kUpperBits = 7;
inline constexpr int kUpperByte = 1 << kUpperBits;
inline constexpr std::int64_t kInputRun = kGroup / Q6K::kRuns;

/// A group of X. q6_k takes two halves only.
template <int Halves>
struct InputGroup {
  std::byte x[static_cast<std::size_t>(Halves)][kGroup];  ///< signed bytes, -127..127: upper, lower
  float scale;
  /// What makes up for the biases of weights, by Start: minus the sum of X times the bias, of q6_k for the
  /// first and the second kInputRun columns. Of two halves and Q8, what products with upper bytes begin with:
  /// that divided by kUpperByte.
  std::int32_t starts[static_cast<std::size_t>(Halves == 1 ? kStartQ6K : kStarts)];
  float sum;  ///< of X, scaled
};
/// The largest X: of two halves the largest whose upper byte is not rounded to 128.
template <int Halves>
inline constexpr float kLargestInput = Halves == 1 ? 127 : 127 * kUpperByte + kUpperByte / 2 - 1;

/// Whether products with upper bytes can begin with what makes up for the bias.
template <class W>
inline constexpr bool kStartsAbove = W::kBias % kUpperByte == 0;
static_assert(kStartsAbove<Q8>);

template <class W, int Halves>
std::int32_t start_of(const InputGroup<Halves>& x, int run) {
  if constexpr (W::kBias == 0) {
    return 0;
  } else {
    return x.starts[W::kStart + run];
  }
}

/// Four bytes in every lane.
inline I four_bytes(const std::byte* x) {
  std::int32_t four;
  std::memcpy(&four, x, sizeof four);
  return set_int(four);
}

/// The sum of a run's products, by lane: begin, add those with a half of X and, where there is another half,
/// go_on and add those with it; then total. Where Chained, lower ones are added to the sum of upper ones,
/// which takes fewer instructions and registers; where not, both sums can grow at a time.
template <class W, int Halves, bool Chained>
struct RunSum {
  using Products = typename W::Products;
  static constexpr bool kStartsFirst = Halves == 1 || kStartsAbove<W>;
  static constexpr bool kChained = Halves == 1 || (Chained && Products::kWide);

  void begin(std::int32_t start) { sum_ = Products::begin(kStartsFirst ? start : 0); }
  void add(I w, const std::byte* four) {
    if constexpr (requires { Products::add_four(sum_, w, four); }) {
      sum_ = Products::add_four(sum_, w, four);
    } else {
      sum_ = Products::add(sum_, w, four_bytes(four));
    }
  }
  void go_on(std::int32_t start) {
    if constexpr (kChained) {
      sum_ = shift_left<kUpperBits>(sum_);
      if constexpr (!kStartsFirst) sum_ = add_int(sum_, set_int(start));
    } else {
      upper_ = Products::end(sum_, 0);
      sum_ = Products::begin(kStartsFirst ? 0 : start);
    }
  }
  [[nodiscard]] V total(std::int32_t start) const {
    if constexpr (kChained) return to_float(Products::end(sum_, start));
    const I lower = Products::end(sum_, kStartsFirst ? 0 : start);
    return to_float(add_int(shift_left<kUpperBits>(upper_), lower));
  }

 private:
  I sum_, upper_;
};

inline std::int64_t input_groups(std::int64_t cols) {
  return round_up(cols, kBlockColumns) / kGroup;
}

/// Records lie in tiles of TokenBlock tokens, [group][token] within each.
template <int TokenBlock, int Halves>
std::size_t integer_input_bytes(std::int64_t tokens, std::int64_t cols) noexcept {
  return static_cast<std::size_t>(round_up(tokens, TokenBlock) * input_groups(cols)) *
         sizeof(InputGroup<Halves>);
}

inline constexpr int kInputVectors = static_cast<int>(kGroup / kLanes);

/// Stores rounded numbers as bytes, what makes up for biases, and their sum times the scale.
inline void store_input(const Row<kInputVectors>& rounded, float scale, InputGroup<1>& to) {
  V bytes = zero();
  QGEN_UNROLL
  for (int i = 0; i < kInputVectors; ++i) {
    store_bytes(to.x[0] + i * kLanes, rounded[i]);
    bytes = bytes + rounded[i];
  }
  const float total = sum(bytes);
  to.scale = scale;
  to.starts[kStartQ8] = -Q8::kBias * static_cast<std::int32_t>(total);
  to.starts[kStartQ4] = -Q4::kBias * static_cast<std::int32_t>(total);
  to.sum = scale * total;
}

inline void store_input(const Row<kInputVectors>& rounded, float scale, InputGroup<2>& to) {
  V sums[Q6K::kRuns] = {};
  QGEN_UNROLL
  for (int i = 0; i < kInputVectors; ++i) {
    const V upper = round(rounded[i] * set(1.0f / kUpperByte));
    store_bytes(to.x[0] + i * kLanes, upper);
    store_bytes(to.x[1] + i * kLanes, rounded[i] - upper * set(kUpperByte));
    V& run = sums[i * Q6K::kRuns / kInputVectors];
    run = run + rounded[i];
  }
  // Below 2^24, so exact until they are scaled.
  const float first = sum(sums[0]), second = sum(sums[1]);
  const auto a = static_cast<std::int32_t>(first), b = static_cast<std::int32_t>(second);
  to.scale = scale;
  to.starts[kStartQ8] = -Q8::kBias / kUpperByte * (a + b);
  to.starts[kStartQ4] = -Q4::kBias * (a + b);
  to.starts[kStartQ6K] = -Q6K::kBias * a;
  to.starts[kStartQ6K + 1] = -Q6K::kBias * b;
  to.sum = scale * (first + second);
}

/// Rounds kGroup floats. Below 2^-100 they count as zeros: their inverses might be no floats.
template <int Halves, bool Rotated>
void prepare_group(const float* x, InputGroup<Halves>& to) {
  Row<kInputVectors> v;
  V most = zero(), bad = zero();
  QGEN_UNROLL
  for (int i = 0; i < kInputVectors; ++i) v[i] = load(x + i * kLanes);
  if constexpr (Rotated) rotate_input(v);
  QGEN_UNROLL
  for (int i = 0; i < kInputVectors; ++i) {
    most = max(abs(v[i]), most);
    bad = fma(v[i], zero(), bad);  // NaN for what is not finite
  }
  if (!all_below(bad, 1.0f)) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    to = {};
    to.scale = to.sum = kNan;
    return;
  }
  const float top = largest(most);
  const V inverse = set(top < 0x1p-100f ? 0.0f : kLargestInput<Halves> / top);
  QGEN_UNROLL
  for (int i = 0; i < kInputVectors; ++i) v[i] = round(v[i] * inverse);
  store_input(v, top / kLargestInput<Halves>, to);
}

/// Rounds a token to records that lie `stride` apart.
template <int Halves, bool Rotated>
void prepare_token(const float* x, std::int64_t cols, std::int64_t stride, InputGroup<Halves>* to) {
  const std::int64_t whole = cols / kGroup, all = input_groups(cols);
  for (std::int64_t g = 0; g < whole; ++g) {
    prepare_group<Halves, Rotated>(x + g * kGroup, to[g * stride]);
  }
  for (std::int64_t g = whole; g < all; ++g) {
    float part[kGroup] = {};
    for (std::int64_t c = g * kGroup; c < cols; ++c) part[c - g * kGroup] = x[c];
    prepare_group<Halves, Rotated>(part, to[g * stride]);
  }
}

/// One form for all types of integers, but for rotated ones, so that matrices of several types may share it.
template <int TokenBlock, int Halves, bool Rotated>
void integer_prepare(const float* x, std::int64_t x_stride, std::int64_t begin, std::int64_t end,
                     std::int64_t cols, std::byte* input) noexcept {
  auto* records = reinterpret_cast<InputGroup<Halves>*>(input);
  for (std::int64_t t = begin; t < end; ++t) {
    InputGroup<Halves>* tile = records + t / TokenBlock * TokenBlock * input_groups(cols);
    prepare_token<Halves, Rotated>(x + t * x_stride, cols, TokenBlock, tile + t % TokenBlock);
  }
}
