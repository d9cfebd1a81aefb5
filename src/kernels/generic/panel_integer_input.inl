// X for panels of integers: rounded to 16 bits by groups, which lie in records of their own. With 8 bits the
// rounding of X would cost more than twice as much accuracy as that of the weights; the other 8 cost a second
// product, for which reading the weights leaves time.

/// The upper or the lower bytes of a group of X.
struct InputHalf {
  std::byte x[kGroup];  ///< signed bytes
  float scale;
  std::int32_t start;  ///< minus the weights' bias times the sum of x
};
inline constexpr int kInputHalves = 2;

/// A group of X: a number is 256 times its upper byte, -127..127, plus its lower one, -128..127.
struct InputGroup {
  InputHalf halves[kInputHalves];  ///< upper, lower
};
inline constexpr float kLargestInput = 127 * 256 + 127;

inline std::int64_t input_groups(std::int64_t cols) {
  return round_up(cols, kBlockColumns) / kGroup;
}

/// Records lie in tiles of TokenBlock tokens, [group][token] within each.
template <int TokenBlock>
std::size_t integer_input_bytes(std::int64_t tokens, std::int64_t cols) noexcept {
  return static_cast<std::size_t>(round_up(tokens, TokenBlock) * input_groups(cols)) * sizeof(InputGroup);
}

/// Rounds kGroup floats. Below 2^-100 they count as zeros: their inverses might be no floats.
template <class W>
void prepare_group(const float* x, InputGroup& to) {
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
    to = {{{{}, kNan, 0}, {{}, kNan, 0}}};
    return;
  }
  const float top = largest(most);
  const V inverse = set(top < 0x1p-100f ? 0.0f : kLargestInput / top);
  V upper_sum = zero(), lower_sum = zero();
  QGEN_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const V rounded = round(v[i] * inverse);
    // The half above takes the tie, so that the lower byte is -128 rather than 128.
    const V upper = round((rounded + set(0.5f)) * set(0x1p-8f));
    const V lower = rounded - upper * set(256.0f);
    store_bytes(to.halves[0].x + i * kLanes, upper);
    store_bytes(to.halves[1].x + i * kLanes, lower);
    upper_sum = upper_sum + upper;
    lower_sum = lower_sum + lower;
  }
  to.halves[1].scale = top / kLargestInput;
  to.halves[0].scale = to.halves[1].scale * 256.0f;
  to.halves[0].start = -W::kBias * static_cast<std::int32_t>(sum(upper_sum));
  to.halves[1].start = -W::kBias * static_cast<std::int32_t>(sum(lower_sum));
}

/// Rounds a token to records that lie `stride` apart.
template <class W>
void prepare_token(const float* x, std::int64_t cols, std::int64_t stride, InputGroup* to) {
  const std::int64_t whole = cols / kGroup, all = input_groups(cols);
  for (std::int64_t g = 0; g < whole; ++g) prepare_group<W>(x + g * kGroup, to[g * stride]);
  for (std::int64_t g = whole; g < all; ++g) {
    float part[kGroup] = {};
    for (std::int64_t c = g * kGroup; c < cols; ++c) part[c - g * kGroup] = x[c];
    prepare_group<W>(part, to[g * stride]);
  }
}

template <class W, int TokenBlock>
void integer_prepare(const float* x, std::int64_t x_stride, std::int64_t begin, std::int64_t end,
                     std::int64_t cols, std::byte* input) noexcept {
  InputGroup* records = reinterpret_cast<InputGroup*>(input);
  for (std::int64_t t = begin; t < end; ++t) {
    InputGroup* tile = records + t / TokenBlock * TokenBlock * input_groups(cols);
    prepare_token<W>(x + t * x_stride, cols, TokenBlock, tile + t % TokenBlock);
  }
}

/// Four bytes in every lane.
inline I four_bytes(const std::byte* x) {
  std::int32_t four;
  std::memcpy(&four, x, sizeof four);
  return set_int(four);
}
