// X for panels of integers: rounded by groups, which lie in records of their own, to 16 bits, that is, two
// halves, or to 8, that is, one. With 8 bits the rounding of X costs more than twice as much accuracy as that
// of weights to 8 bits; the other half costs a second product, for which reading the weights leaves time.
// Weights of 4 bits lose far more than X then does, so very many tokens are rounded to 8 bits for them.

/// The upper or the lower bytes of a group of X, or of one half all of it, with what makes up for the first
/// Starts biases.
template <int Starts>
struct InputHalf {
  std::byte x[kGroup];  ///< signed bytes, -127..127
  float scale;
  /// Minus the sum of x times the bias of weights, by Start; of q6_k for the first and the second kInputRun
  /// columns.
  std::int32_t starts[static_cast<std::size_t>(Starts)];
};
inline constexpr std::int64_t kInputRun = kGroup / Q6K::kRuns;

/// A group of X: a number is its byte or, of two halves, kUpperByte times its upper byte plus its lower one.
/// With 255 instead of 256 no byte is -128, which has no opposite. q6_k takes two halves only.
template <int Halves>
struct InputGroup {
  InputHalf<Halves == 1 ? kStartQ6K : kStarts> halves[static_cast<std::size_t>(Halves)];  ///< upper, lower
  float sum;
};
inline constexpr float kUpperByte = 255;
template <int Halves>
inline constexpr float kLargestInput = Halves == 1 ? 127 : 127 * kUpperByte + 127;

/// What products with a run of weights start from.
template <class W, int Starts>
std::int32_t start_of(const InputHalf<Starts>& half, int run) {
  if constexpr (W::kBias == 0) {
    return 0;
  } else {
    return half.starts[W::kStart + run];
  }
}

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
  InputHalf<kStartQ6K>& all = to.halves[0];
  V bytes = zero();
  QGEN_UNROLL
  for (int i = 0; i < kInputVectors; ++i) {
    store_bytes(all.x + i * kLanes, rounded[i]);
    bytes = bytes + rounded[i];
  }
  const float total = sum(bytes);
  all.scale = scale;
  all.starts[kStartQ8] = -Q8::kBias * static_cast<std::int32_t>(total);
  all.starts[kStartQ4] = -Q4::kBias * static_cast<std::int32_t>(total);
  to.sum = scale * total;
}

inline void store_input(const Row<kInputVectors>& rounded, float scale, InputGroup<2>& to) {
  V sums[2][Q6K::kRuns] = {};  // of upper and lower bytes, by run
  QGEN_UNROLL
  for (int i = 0; i < kInputVectors; ++i) {
    const int run = i * Q6K::kRuns / kInputVectors;
    const V upper = round(rounded[i] * set(1 / kUpperByte));
    const V lower = rounded[i] - upper * set(kUpperByte);
    store_bytes(to.halves[0].x + i * kLanes, upper);
    store_bytes(to.halves[1].x + i * kLanes, lower);
    sums[0][run] = sums[0][run] + upper;
    sums[1][run] = sums[1][run] + lower;
  }
  float totals[2];
  for (int half = 0; half < 2; ++half) {
    const float first = sum(sums[half][0]), second = sum(sums[half][1]);
    const auto a = static_cast<std::int32_t>(first), b = static_cast<std::int32_t>(second);
    std::int32_t* starts = to.halves[half].starts;
    starts[kStartQ8] = -Q8::kBias * (a + b);
    starts[kStartQ4] = -Q4::kBias * (a + b);
    starts[kStartQ6K] = -Q6K::kBias * a;
    starts[kStartQ6K + 1] = -Q6K::kBias * b;
    totals[half] = first + second;
  }
  to.halves[0].scale = scale * kUpperByte;
  to.halves[1].scale = scale;
  // Below 2^24, so exact until it is scaled.
  to.sum = scale * (totals[0] * kUpperByte + totals[1]);
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
    for (auto& half : to.halves) half.scale = kNan;
    to.sum = kNan;
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

/// Four bytes in every lane.
inline I four_bytes(const std::byte* x) {
  std::int32_t four;
  std::memcpy(&four, x, sizeof four);
  return set_int(four);
}
