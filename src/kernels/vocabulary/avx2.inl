// The vector vocabulary (see portable.inl) for AVX2 with FMA and F16C: eight floats.

using V = __m256;
using I = __m256i;

inline constexpr int kRegisters = 16;
inline constexpr std::int64_t kLanes = 8;
inline constexpr int kTileTokens = 5;
inline constexpr int kFewTile = 3;
inline constexpr int kFewChains = 4;
inline constexpr int kBytePanels = 2;
inline constexpr int kByteTokens = 3;
inline constexpr int kByteFewTokens = 4;
inline constexpr int kWeightLocality = 3;

inline V zero() {
  return _mm256_setzero_ps();
}

inline V set(float value) {
  return _mm256_set1_ps(value);
}

inline V load(const void* from) {
  return _mm256_loadu_ps(static_cast<const float*>(from));
}

inline void store(void* to, V v) {
  _mm256_storeu_ps(static_cast<float*>(to), v);
}

inline __m128i load_u16(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}

inline V load_bf16(const void* from) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(load_u16(from)), 16));
}

inline V load_f16(const void* from) {
  return _mm256_cvtph_ps(load_u16(from));
}

inline V low_bf16(V words) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_castps_si256(words), 16));
}

inline V high_bf16(V words) {
  return _mm256_and_ps(words, _mm256_castsi256_ps(_mm256_set1_epi32(-0x10000)));
}

/// The lower halves of all lanes, next to each other.
inline __m128i low_halves(__m256i words) {
  const __m256i masked = _mm256_and_si256(words, _mm256_set1_epi32(0xFFFF));
  return _mm_packus_epi32(_mm256_castsi256_si128(masked), _mm256_extracti128_si256(masked, 1));
}

inline void store_f16(void* to, V v) {
  _mm_storeu_si128(static_cast<__m128i*>(to),
                   _mm256_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/// Rounded in the upper half of every lane; the lower one is of no meaning.
inline __m256i round_bf16(V v) {
  const __m256i bits = _mm256_castps_si256(v);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
  const __m256i quiet = _mm256_or_si256(bits, _mm256_set1_epi32(0x400000));
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(rounded, quiet, nan);
}

inline void store_bf16(void* to, V v) {
  _mm_storeu_si128(static_cast<__m128i*>(to), low_halves(_mm256_srli_epi32(round_bf16(v), 16)));
}

inline V pair_bf16(V even, V odd) {
  return _mm256_castsi256_ps(
      _mm256_blend_epi16(_mm256_srli_epi32(round_bf16(even), 16), round_bf16(odd), 0xAA));
}

inline V fma(V a, V b, V c) {
  return _mm256_fmadd_ps(a, b, c);
}

inline V min(V x, V y) {
  return _mm256_min_ps(x, y);
}

inline V max(V x, V y) {
  return _mm256_max_ps(x, y);
}

inline V abs(V x) {
  return _mm256_and_ps(x, _mm256_castsi256_ps(_mm256_set1_epi32(0x7FFFFFFF)));
}

inline V round(V x) {
  return _mm256_round_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

inline V ldexp(V x, V n) {
  // 2^128 is no float, 2 * 2^127 is.
  const __m256i exponent = _mm256_add_epi32(_mm256_cvtps_epi32(n), _mm256_set1_epi32(126));
  return (x + x) * _mm256_castsi256_ps(_mm256_slli_epi32(exponent, 23));
}

inline V zero_below(V v, V x, float limit) {
  return _mm256_andnot_ps(_mm256_cmp_ps(x, set(limit), _CMP_LT_OQ), v);
}

inline bool all_below(V x, float limit) {
  return _mm256_movemask_ps(_mm256_cmp_ps(x, set(limit), _CMP_LT_OQ)) == 0xFF;
}

inline float sum(V v) {
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

inline float largest(V v) {
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

inline V pairs_low(V a, V b) {
  return _mm256_castpd_ps(_mm256_unpacklo_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
}

inline V pairs_high(V a, V b) {
  return _mm256_castpd_ps(_mm256_unpackhi_pd(_mm256_castps_pd(a), _mm256_castps_pd(b)));
}

inline void transpose(V (&r)[kLanes]) {
  V t[kLanes];
  QGEN_UNROLL
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  QGEN_UNROLL
  for (int i = 0; i < 8; i += 4) {
    r[i] = pairs_low(t[i], t[i + 2]);
    r[i + 1] = pairs_high(t[i], t[i + 2]);
    r[i + 2] = pairs_low(t[i + 1], t[i + 3]);
    r[i + 3] = pairs_high(t[i + 1], t[i + 3]);
  }
  QGEN_UNROLL
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x20);
    t[i + 4] = _mm256_permute2f128_ps(r[i], r[i + 4], 0x31);
  }
  QGEN_UNROLL
  for (int i = 0; i < 8; ++i) r[i] = t[i];
}

inline V where_greater(V a, V b, V x, V y) {
  return _mm256_blendv_ps(y, x, _mm256_cmp_ps(a, b, _CMP_GT_OQ));
}

inline I load_int(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

inline void store_int(void* to, I v) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), v);
}

inline I set_int(std::int32_t value) {
  return _mm256_set1_epi32(value);
}

inline I to_int(V v) {
  return _mm256_cvtps_epi32(v);
}

inline V to_float(I v) {
  return _mm256_cvtepi32_ps(v);
}

inline I add_int(I a, I b) {
  return _mm256_add_epi32(a, b);
}

template <int n>
I shift_left(I v) {
  return _mm256_slli_epi32(v, n);
}

template <int n>
I shift_right(I v) {
  return _mm256_srli_epi32(v, n);
}

inline I low_nibbles(I v) {
  return _mm256_and_si256(v, _mm256_set1_epi8(15));
}

inline I high_nibbles(I v) {
  return low_nibbles(_mm256_srli_epi16(v, 4));
}

/// Byte n of every lane, 0 the lowest.
template <int n, bool Signed>
I byte_of(I v) {
  if constexpr (Signed) return _mm256_srai_epi32(_mm256_slli_epi32(v, 24 - 8 * n), 24);
  return _mm256_and_si256(_mm256_srli_epi32(v, 8 * n), _mm256_set1_epi32(255));
}

inline V load_bytes(const void* from) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(static_cast<const __m128i*>(from))));
}

inline void store_bytes(void* to, V v) {
  const __m256i words = to_int(v);
  const __m128i halves = _mm_packs_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storel_epi64(static_cast<__m128i*>(to), _mm_packs_epi16(halves, halves));
}
