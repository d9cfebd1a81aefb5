// Rounding floats to panels of integers; see panel_integer.inl for what lies where. Rows are transposed into
// lanes first, so that what concerns a group is arithmetic between vectors.

/// The columns of a group, a vector of rows each.
using GroupColumns = V[static_cast<std::size_t>(kGroup)];

/// Group at w of `rows` rows, `columns` columns; zeros beyond them.
inline void load_columns(const float* w, std::int64_t stride, std::int64_t rows, std::int64_t columns,
                         GroupColumns& to) {
  for (std::int64_t c = 0; c < kGroup; c += kLanes) {
    V block[kLanes];
    load_block(w + c, stride, rows, columns - c, block);
    transpose(block);
    QGEN_UNROLL
    for (std::int64_t i = 0; i < kLanes; ++i) to[c + i] = block[i];
  }
}

/// The largest magnitude of a group, NaN for a group that is not finite.
inline V group_largest(const GroupColumns& w) {
  V most = zero(), bad = zero();
  QGEN_UNROLL
  for (const V& column : w) {
    most = max(abs(column), most);
    bad = fma(column, zero(), bad);
  }
  return most + bad;
}

/// Stores scales and returns what they were rounded to. A scale that is infinite makes zeros of the integers,
/// and zero times infinity is NaN.
inline V store_scale(void* to, V scale) {
  store_f16(to, scale);
  return load_f16(to);
}

/// Bytes of integers in 0..255, `a` lowest.
inline I bytes_of(V a, V b, V c, V d) {
  const V three = fma(c, set(65536.0f), fma(b, set(256.0f), a));
  return to_int(three) | shift_left<24>(to_int(d));
}

/// What to multiply by instead of dividing by a scale, which may be zero or NaN.
inline V inverse_of(V scale) {
  return set(1.0f) / where_greater(abs(scale), zero(), scale, set(1.0f));
}

/// Rounds a group to integers in low..high by a scale and adds `bias`.
inline void round_group(const GroupColumns& w, V scale, float low, float high, float bias, Quads& to) {
  const V inverse = inverse_of(scale);
  const auto rounded = [&](int column) {
    const V near = max(min(w[column] * inverse, set(high)), set(low));
    return round(near) + set(bias);
  };
  QGEN_UNROLL
  for (int i = 0; i < kGroupVectors; ++i) {
    to[i] = bytes_of(rounded(4 * i), rounded(4 * i + 1), rounded(4 * i + 2), rounded(4 * i + 3));
  }
}

/// Scales to try for q8: a group's largest magnitude by 127, which keeps integers, and by these. Which of
/// them rounds a group best is chance; nearer ones round too much alike.
inline constexpr float kOtherDivisors[] = {126.0f, 125.0f, 124.0f, 123.0f};

/// The sum of squared errors of integers times `scale`. The extremes may be one step too large here.
inline V squared_errors(const GroupColumns& w, V scale) {
  const V inverse = inverse_of(scale);
  V sums[4] = {zero(), zero(), zero(), zero()};
  QGEN_UNROLL
  for (int c = 0; c < kGroup; ++c) {
    const V steps = w[c] * inverse, error = steps - round(steps);
    sums[c % 4] = fma(error, error, sums[c % 4]);
  }
  return ((sums[0] + sums[1]) + (sums[2] + sums[3])) * scale * scale;
}

inline void round_to_q8(const GroupColumns& w, std::byte* scales, Quads& to) {
  const V largest = group_largest(w);
  V scale = store_scale(scales, largest / set(127.0f));
  // NaN where it cannot be held: nothing else takes its place then.
  V least = squared_errors(w, scale);
  for (const float divisor : kOtherDivisors) {
    const V tried = store_scale(scales, largest / set(divisor));
    const V errors = squared_errors(w, tried);
    scale = where_greater(least, errors, tried, scale);
    least = min(errors, least);
  }
  store_f16(scales, scale);
  round_group(w, scale, -127.0f, 127.0f, 128.0f, to);
}

/// Scales to try for q4: a group's largest magnitude by these, with either sign. Coarser steps, which leave
/// part of the range unused, win little.
inline constexpr float kDivisors[] = {8.5f, 8.0f, 7.5f, 7.0f};

/// The scale with the least weighted sum of squared errors for integers that were found with some other
/// scale, and how much of the weighted sum of squares it takes away.
struct Fit {
  V scale, gain;
};

/// `importance`: the weight of each column's error.
inline Fit fit(const GroupColumns& w, const GroupColumns& importance, V inverse) {
  V products = zero(), squares = zero();
  QGEN_UNROLL
  for (int c = 0; c < kGroup; ++c) {
    const V q = round(max(min(w[c] * inverse, set(7.0f)), set(-8.0f)));
    const V weighted = importance[c] * q;
    products = fma(w[c], weighted, products);
    squares = fma(q, weighted, squares);
  }
  const V scale = products / squares;
  return {scale, scale * products};
}

/// Errors of large weights count more: by w^2 + the group's mean of w^2, here of weights divided by the
/// largest, so that nothing overflows.
inline void weigh_errors(const GroupColumns& w, V largest, GroupColumns& importance) {
  const V inverse = set(1.0f) / largest;
  V sum = zero();
  QGEN_UNROLL
  for (int c = 0; c < kGroup; ++c) {
    importance[c] = (w[c] * inverse) * (w[c] * inverse);
    sum = sum + importance[c];
  }
  QGEN_UNROLL
  for (V& each : importance) each = fma(sum, set(1.0f / kGroup), each);
}

inline void round_to_q4(const GroupColumns& w, std::byte* scales, Quads& to) {
  const V largest = group_largest(w);
  GroupColumns importance;
  weigh_errors(w, largest, importance);
  Fit best{zero(), zero()};
  for (const float divisor : kDivisors) {
    for (const float signed_divisor : {divisor, -divisor}) {
      const Fit tried = fit(w, importance, set(signed_divisor) / largest);
      best.scale = where_greater(tried.gain, best.gain, tried.scale, best.scale);
      best.gain = max(tried.gain, best.gain);
    }
  }
  // What is not finite leaves the scale at zero, unless this adds it.
  const V scale = store_scale(scales, best.scale + (largest - largest));
  round_group(w, scale, -8.0f, 7.0f, 8.0f, to);
}

/// Rounds the group's columns; writes its scales, returns its bytes.
inline void round_to(Q8, const GroupColumns& w, std::byte* scales, Quads& to) {
  round_to_q8(w, scales, to);
}

inline void round_to(Q4, const GroupColumns& w, std::byte* scales, Quads& to) {
  round_to_q4(w, scales, to);
}

inline void store_quads(Q8, const Quads (&quads)[kBlockGroups], std::byte* block) {
  // Of a bias of 128, only the highest bit differs between signed and unsigned.
  const I flip = set_int(Q8::kBias == 128 ? 0 : static_cast<std::int32_t>(0x80808080u));
  for (int g = 0; g < kBlockGroups; ++g) {
    for (int i = 0; i < kGroupVectors; ++i) {
      store_int(block + (g * kGroupVectors + i) * kVectorBytes, quads[g][i] ^ flip);
    }
  }
}

/// Of four-bit types.
template <class W>
void store_quads(W, const Quads (&quads)[kBlockGroups], std::byte* block) {
  for (int i = 0; i < kGroupVectors; ++i) {
    store_int(block + i * kVectorBytes, quads[0][i] | shift_left<4>(quads[1][i]));
  }
}

inline void store_quads(Q6K, const Quads (&quads)[kBlockGroups], std::byte* block) {
  constexpr int kHalf = kGroupVectors / Q6K::kRuns;
  for (int i = 0; i < kGroupVectors; ++i) {
    store_int(block + i * kVectorBytes, low_nibbles(quads[0][i]) | shift_left<4>(low_nibbles(quads[1][i])));
  }
  for (int i = 0; i < kHalf; ++i) {
    const I first = high_nibbles(quads[0][i]) | shift_left<2>(high_nibbles(quads[0][i + kHalf]));
    const I second = high_nibbles(quads[1][i]) | shift_left<2>(high_nibbles(quads[1][i + kHalf]));
    store_int(block + Q6K::kUpper + i * kVectorBytes, first | shift_left<4>(second));
  }
}

template <class W, bool Rotated>
void pack_integer_panel(const float* w, std::int64_t stride, std::int64_t rows, std::int64_t cols,
                        std::byte* panel) noexcept {
  for (std::int64_t c = 0; c < cols; c += kBlockColumns) {
    std::byte* block = panel + c / kBlockColumns * W::kBytes;
    Quads quads[kBlockGroups];
    for (std::int64_t g = 0; g < kBlockGroups; ++g) {
      GroupColumns columns;
      load_columns(w + c + g * kGroup, stride, rows, cols - c - g * kGroup, columns);
      if constexpr (Rotated) rotate_vectors(columns);
      round_to(W{}, columns, block + W::kScales + g * kVectorBytes / kBlockGroups, quads[g]);
    }
    store_quads(W{}, quads, block);
  }
}
