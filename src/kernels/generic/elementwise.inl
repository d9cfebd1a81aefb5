// What is not a product: norms, rotation, activation, arg-max. Loops run over whole vectors; the last one of
// a range may be partial.

/// e^x to within 2 units in the last place; 0 below -86.9 (where results near the subnormals), inf
/// above 88.8. With n = round(x / ln 2) and r = x - n ln 2, e^x = 2^n e^r; e^r is 1 + r + r^2 p(r) with p
/// fitted on |r| <= ln(2) / 2 (relative error 3e-9). ln 2 is subtracted in two parts, the first short enough
/// that n times it is exact.
inline V exp(V x) {
  const V clamped = min(set(89.0f), max(set(-87.0f), x));
  const V n = round(clamped * set(0x1.715476p0f));
  V r = fma(n, set(-0x1.63p-1f), clamped);
  r = fma(n, set(0x1.bd0106p-13f), r);
  V p = fma(r, set(0x1.6a1f62p-10f), set(0x1.123ccap-7f));
  p = fma(p, r, set(0x1.555904p-5f));
  p = fma(p, r, set(0x1.55548ep-3f));
  p = fma(p, r, set(0x1.fffffcp-2f));
  p = fma(p, r * r, r) + set(1.0f);
  return zero_below(ldexp(p, n), x, -86.9f);
}

inline float exp(float x) {
  alignas(64) float lanes[kLanes];
  store(lanes, exp(set(x)));
  return lanes[0];
}

template <class T>
void widen(const std::byte* src, std::int64_t n, float* dst) noexcept {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    store_up_to(dst + i, load_up_to<T>(src + i * T::kBytes, n - i), n - i);
  }
}

inline void rms_norm(const float* x, const float* weight, float eps, std::int64_t n, float* y) noexcept {
  V squares = zero();
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const V v = load_up_to(x + i, n - i);
    squares = fma(v, v, squares);
  }
  const double mean = static_cast<double>(sum(squares)) / static_cast<double>(std::max<std::int64_t>(n, 1));
  // NaN where the squares are too large for a float: a factor of zero would turn overflow into plain numbers.
  const V factor = set(static_cast<float>(1.0 / std::sqrt(mean + static_cast<double>(eps)) + 0.0 * mean));
  for (std::int64_t i = 0; i < n; i += kLanes) {
    store_up_to(y + i, load_up_to(x + i, n - i) * factor * load_up_to(weight + i, n - i), n - i);
  }
}

inline void rope_adjacent(float* x, const float* cos, const float* sin, std::int64_t half) {
  for (std::int64_t i = 0; i < half; ++i) {
    const float a = x[2 * i], b = x[2 * i + 1];
    x[2 * i] = a * cos[i] - b * sin[i];
    x[2 * i + 1] = b * cos[i] + a * sin[i];
  }
}

inline void rope(float* x, const float* cos, const float* sin, std::int64_t half, bool adjacent) noexcept {
  if (adjacent) return rope_adjacent(x, cos, sin, half);
  for (std::int64_t i = 0; i < half; i += kLanes) {
    const std::int64_t n = half - i;
    const V a = load_up_to(x + i, n), b = load_up_to(x + half + i, n);
    const V c = load_up_to(cos + i, n), s = load_up_to(sin + i, n);
    store_up_to(x + i, a * c - b * s, n);
    store_up_to(x + half + i, b * c + a * s, n);
  }
}

inline void silu_mul(const float* gate, const float* up, std::int64_t n, float* out) noexcept {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    const V g = load_up_to(gate + i, n - i);
    const V silu = g / (set(1.0f) + exp(zero() - g));
    store_up_to(out + i, silu * load_up_to(up + i, n - i), n - i);
  }
}

inline void add(const float* x, std::int64_t n, float* y) noexcept {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    store_up_to(y + i, load_up_to(y + i, n - i) + load_up_to(x + i, n - i), n - i);
  }
}

inline void mul(const float* x, std::int64_t n, float* y) noexcept {
  for (std::int64_t i = 0; i < n; i += kLanes) {
    store_up_to(y + i, load_up_to(y + i, n - i) * load_up_to(x + i, n - i), n - i);
  }
}

inline void scale(const float* x, float factor, std::int64_t n, float* y) noexcept {
  for (std::int64_t i = 0; i < n; i += kLanes)
    store_up_to(y + i, load_up_to(x + i, n - i) * set(factor), n - i);
}

/// Looks at values [begin, end) one by one.
inline void best_of(const float* values, std::int64_t begin, std::int64_t end, BestLogit& best) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  for (std::int64_t i = begin; i < end; ++i) {
    if (values[i] > best.value) best.index = i, best.value = values[i];
    if (!(values[i] < kInfinity) && best.not_finite < 0) best.not_finite = i;
  }
}

/// Most blocks of values neither raise the maximum nor hold anything but finite values; vectors find the
/// others.
inline BestLogit best(const float* values, std::int64_t n) noexcept {
  constexpr std::int64_t kBlock = 32 * kLanes;
  BestLogit best;
  std::int64_t i = 0;
  for (; i + kBlock <= n; i += kBlock) {
    V highest = set(best.value);
    bool plain = true;
    for (std::int64_t j = 0; j < kBlock; j += kLanes) {
      const V v = load(values + i + j);
      highest = max(v, highest);
      plain = plain && all_below(v, std::numeric_limits<float>::infinity());
    }
    if (largest(highest) > best.value || (!plain && best.not_finite < 0))
      best_of(values, i, i + kBlock, best);
  }
  best_of(values, i, n, best);
  return best;
}
