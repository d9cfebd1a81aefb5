// X for panels of integers: rounded to 8 bits by groups, which lie in records of their own.

/// A group of X.
struct InputGroup {
  std::byte x[kGroup];  ///< signed bytes
  float scale;
  std::int32_t start;  ///< minus the weights' bias times the sum of x
};

inline std::int64_t input_groups(std::int64_t cols) {
  return round_up(cols, kBlockColumns) / kGroup;
}

/// Records lie in tiles of TokenBlock tokens, [group][token] within each.
template <int TokenBlock>
std::size_t integer_input_bytes(std::int64_t tokens, std::int64_t cols) noexcept {
  return static_cast<std::size_t>(round_up(tokens, TokenBlock) * input_groups(cols)) * sizeof(InputGroup);
}

inline std::size_t integer_scratch_bytes(std::int64_t) noexcept {
  return 0;
}

/// Rounds kGroup floats. Below 2^-100 they count as zeros: 127 / largest might be no float.
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
    to = {{}, std::numeric_limits<float>::quiet_NaN(), 0};
    return;
  }
  const float top = largest(most);
  const V inverse = set(top < 0x1p-100f ? 0.0f : 127.0f / top);
  V total = zero();
  QGEN_UNROLL
  for (int i = 0; i < kVectors; ++i) {
    const V rounded = round(v[i] * inverse);
    store_bytes(to.x + i * kLanes, rounded);
    total = total + rounded;
  }
  to.scale = top / 127.0f;
  to.start = -W::kBias * static_cast<std::int32_t>(sum(total));
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
