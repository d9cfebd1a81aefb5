// X for panels of integers: rounded to 16 bits by groups, which lie in records of their own. With 8 bits the
// rounding of X would cost more than twice as much accuracy as that of the weights; the other 8 cost a second
// product, for which reading the weights leaves time.

/// The upper or the lower bytes of a group of X.
struct InputHalf {
  std::byte x[kGroup];  ///< signed bytes, -127..127
  float scale;
  /// Minus the sum of x times the bias of weights, by Start; of q6_k for the first and the second kInputRun
  /// columns.
  std::int32_t starts[kStarts];
};
inline constexpr int kInputHalves = 2;
inline constexpr std::int64_t kInputRun = kGroup / Q6K::kRuns;

/// A group of X: a number is kUpperByte times its upper byte plus its lower one. With 255 instead of 256 no
/// byte is -128, which has no opposite.
struct InputGroup {
  InputHalf halves[kInputHalves];  ///< upper, lower
  float sum;
};
inline constexpr float kUpperByte = 255;
inline constexpr float kLargestInput = 127 * kUpperByte + 127;

/// What products with a run of weights start from.
template <class W>
std::int32_t start_of(const InputHalf& half, int run) {
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
template <int TokenBlock>
std::size_t integer_input_bytes(std::int64_t tokens, std::int64_t cols) noexcept {
  return static_cast<std::size_t>(round_up(tokens, TokenBlock) * input_groups(cols)) * sizeof(InputGroup);
}

/// Splits kInputRun rounded numbers into bytes from x on; returns the sums of both halves' bytes.
inline std::array<float, kInputHalves> split_run(const V* rounded, std::int64_t x, InputGroup& to) {
  V upper_sum = zero(), lower_sum = zero();
  QGEN_UNROLL
  for (std::int64_t i = 0; i < kInputRun / kLanes; ++i) {
    const V upper = round(rounded[i] * set(1 / kUpperByte));
    const V lower = rounded[i] - upper * set(kUpperByte);
    store_bytes(to.halves[0].x + x + i * kLanes, upper);
    store_bytes(to.halves[1].x + x + i * kLanes, lower);
    upper_sum = upper_sum + upper;
    lower_sum = lower_sum + lower;
  }
  return {sum(upper_sum), sum(lower_sum)};
}

/// Rounds kGroup floats. Below 2^-100 they count as zeros: their inverses might be no floats.
inline void prepare_group(const float* x, InputGroup& to) {
  constexpr int kVectors = static_cast<int>(kGroup / kLanes);
  V v[kVectors], most = zero(), bad = zero();
  QGEN_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    v[i] = load(x + i * kLanes);
    most = max(abs(v[i]), most);
    bad = fma(v[i], zero(), bad);  // NaN for what is not finite
  }
  if (!all_below(bad, 1.0f)) {
    constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
    to = {{{{}, kNan, {}}, {{}, kNan, {}}}, kNan};
    return;
  }
  const float top = largest(most);
  const V inverse = set(top < 0x1p-100f ? 0.0f : kLargestInput / top);
  QGEN_UNROLL
  for (int i = 0; i < kVectors; ++i) v[i] = round(v[i] * inverse);
  const auto first = split_run(v, 0, to), second = split_run(v + kVectors / 2, kInputRun, to);
  to.halves[1].scale = top / kLargestInput;
  to.halves[0].scale = to.halves[1].scale * kUpperByte;
  for (std::size_t half = 0; half < kInputHalves; ++half) {
    const auto a = static_cast<std::int32_t>(first[half]), b = static_cast<std::int32_t>(second[half]);
    std::int32_t* starts = to.halves[half].starts;
    starts[kStartQ8] = -Q8::kBias * (a + b);
    starts[kStartQ4] = -Q4::kBias * (a + b);
    starts[kStartQ6K] = -Q6K::kBias * a;
    starts[kStartQ6K + 1] = -Q6K::kBias * b;
  }
  // Below 2^24, so exact until it is scaled.
  to.sum = to.halves[1].scale * ((first[0] + second[0]) * kUpperByte + (first[1] + second[1]));
}

/// Rounds a token to records that lie `stride` apart.
inline void prepare_token(const float* x, std::int64_t cols, std::int64_t stride, InputGroup* to) {
  const std::int64_t whole = cols / kGroup, all = input_groups(cols);
  for (std::int64_t g = 0; g < whole; ++g) prepare_group(x + g * kGroup, to[g * stride]);
  for (std::int64_t g = whole; g < all; ++g) {
    float part[kGroup] = {};
    for (std::int64_t c = g * kGroup; c < cols; ++c) part[c - g * kGroup] = x[c];
    prepare_group(part, to[g * stride]);
  }
}

/// One form for all types of integers, so that matrices of several types may share it.
template <int TokenBlock>
void integer_prepare(const float* x, std::int64_t x_stride, std::int64_t begin, std::int64_t end,
                     std::int64_t cols, std::byte* input) noexcept {
  InputGroup* records = reinterpret_cast<InputGroup*>(input);
  for (std::int64_t t = begin; t < end; ++t) {
    InputGroup* tile = records + t / TokenBlock * TokenBlock * input_groups(cols);
    prepare_token(x + t * x_stride, cols, TokenBlock, tile + t % TokenBlock);
  }
}

/// Four bytes in every lane.
inline I four_bytes(const std::byte* x) {
  std::int32_t four;
  std::memcpy(&four, x, sizeof four);
  return set_int(four);
}
