// The vector vocabulary (see portable.inl) for AVX-512 F, BW, DQ, VL and VNNI: sixteen floats.

using V = __m512;
using I = __m512i;

inline constexpr int kRegisters = 32;
inline constexpr std::int64_t kLanes = 16;
inline constexpr int kTileTokens = 12;
inline constexpr int kFewTile = 12;
inline constexpr int kFewChains = 2;
inline constexpr int kBytePanels = 2;
inline constexpr int kByteTokens = 7;
inline constexpr int kByteFewTokens = 8;

inline V zero() {
  return _mm512_setzero_ps();
}

inline V set(float value) {
  return _mm512_set1_ps(value);
}

inline V load(const void* from) {
  return _mm512_loadu_ps(from);
}

inline void store(void* to, V v) {
  _mm512_storeu_ps(to, v);
}

inline __m256i load_u16(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}

inline V load_bf16(const void* from) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(load_u16(from)), 16));
}

inline V load_f16(const void* from) {
  return _mm512_cvtph_ps(load_u16(from));
}

inline V low_bf16(V words) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_castps_si512(words), 16));
}

inline V high_bf16(V words) {
  return _mm512_castsi512_ps(_mm512_and_si512(_mm512_castps_si512(words), _mm512_set1_epi32(-0x10000)));
}

inline void store_f16(void* to, V v) {
  _mm256_storeu_si256(static_cast<__m256i*>(to),
                      _mm512_cvtps_ph(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}

/// Rounded in the upper half of every lane; the lower one is of no meaning.
inline __m512i round_bf16(V v) {
  const __m512i bits = _mm512_castps_si512(v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __m512i rounded = _mm512_add_epi32(bits, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF)));
  const __m512i quiet = _mm512_or_si512(bits, _mm512_set1_epi32(0x400000));
  return _mm512_mask_blend_epi32(_mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q), rounded, quiet);
}

inline void store_bf16(void* to, V v) {
  const __m512i words = _mm512_srli_epi32(round_bf16(v), 16);
  _mm256_storeu_si256(static_cast<__m256i*>(to), _mm512_cvtepi32_epi16(words));
}

inline V pair_bf16(V even, V odd) {
  return _mm512_castsi512_ps(
      _mm512_mask_mov_epi16(_mm512_srli_epi32(round_bf16(even), 16), 0xAAAAAAAA, round_bf16(odd)));
}

inline V fma(V a, V b, V c) {
  return _mm512_fmadd_ps(a, b, c);
}

inline V min(V x, V y) {
  return _mm512_min_ps(x, y);
}

inline V max(V x, V y) {
  return _mm512_max_ps(x, y);
}

inline V abs(V x) {
  return _mm512_abs_ps(x);
}

inline V round(V x) {
  return _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}

inline V ldexp(V x, V n) {
  return _mm512_scalef_ps(x, n);
}

inline V zero_below(V v, V x, float limit) {
  return _mm512_maskz_mov_ps(_mm512_cmp_ps_mask(x, set(limit), _CMP_NLT_UQ), v);
}

inline bool all_below(V x, float limit) {
  return _mm512_cmp_ps_mask(x, set(limit), _CMP_LT_OQ) == 0xFFFF;
}

inline float sum(V v) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  __m128 s = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  s = _mm_add_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
}

inline float largest(V v) {
  const __m256 eight = _mm256_max_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
  __m128 s = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  s = _mm_max_ps(s, _mm_movehl_ps(s, s));
  return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
}

inline V pairs_low(V a, V b) {
  return _mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}

inline V pairs_high(V a, V b) {
  return _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(a), _mm512_castps_pd(b)));
}

inline void transpose(V (&r)[kLanes]) {
  V t[kLanes];
  // Within each 128-bit quarter first, then the quarters: even and odd ones apart, twice.
  QGEN_UNROLL
  for (int i = 0; i < 16; i += 2) {
    t[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
  }
  QGEN_UNROLL
  for (int i = 0; i < 16; i += 4) {
    r[i] = pairs_low(t[i], t[i + 2]);
    r[i + 1] = pairs_high(t[i], t[i + 2]);
    r[i + 2] = pairs_low(t[i + 1], t[i + 3]);
    r[i + 3] = pairs_high(t[i + 1], t[i + 3]);
  }
  QGEN_UNROLL
  for (int i = 0; i < 4; ++i) {
    t[i] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0x88);
    t[i + 4] = _mm512_shuffle_f32x4(r[i], r[i + 4], 0xDD);
    t[i + 8] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0x88);
    t[i + 12] = _mm512_shuffle_f32x4(r[i + 8], r[i + 12], 0xDD);
  }
  QGEN_UNROLL
  for (int i = 0; i < 8; ++i) {
    r[i] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0x88);
    r[i + 8] = _mm512_shuffle_f32x4(t[i], t[i + 8], 0xDD);
  }
}

inline V where_greater(V a, V b, V x, V y) {
  return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(a, b, _CMP_GT_OQ), y, x);
}

inline I load_int(const void* from) {
  return _mm512_loadu_si512(from);
}

inline void store_int(void* to, I v) {
  _mm512_storeu_si512(to, v);
}

inline I set_int(std::int32_t value) {
  return _mm512_set1_epi32(value);
}

inline I to_int(V v) {
  return _mm512_cvtps_epi32(v);
}

inline V to_float(I v) {
  return _mm512_cvtepi32_ps(v);
}

inline I add_int(I a, I b) {
  return _mm512_add_epi32(a, b);
}

template <int n>
I shift_left(I v) {
  return _mm512_slli_epi32(v, n);
}

template <int n>
I shift_right(I v) {
  return _mm512_srli_epi32(v, n);
}

/// Byte n of every lane, 0 the lowest.
template <int n, bool Signed>
I byte_of(I v) {
  if constexpr (Signed) return _mm512_srai_epi32(_mm512_slli_epi32(v, 24 - 8 * n), 24);
  return _mm512_and_si512(_mm512_srli_epi32(v, 8 * n), _mm512_set1_epi32(0xFF));
}

inline I low_nibbles(I v) {
  return _mm512_and_si512(v, _mm512_set1_epi8(15));
}

inline I high_nibbles(I v) {
  return low_nibbles(_mm512_srli_epi16(v, 4));
}

inline V load_bytes(const void* from) {
  return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(static_cast<const __m128i*>(from))));
}

inline void store_bytes(void* to, V v) {
  _mm_storeu_si128(static_cast<__m128i*>(to), _mm512_cvtepi32_epi8(to_int(v)));
}

struct ByteProducts {
  static constexpr int kBias = 128;
  static constexpr bool kWide = true;
  static I begin(std::int32_t start) { return set_int(start); }
  static I add(I sum, I w, I x) { return _mm512_dpbusd_epi32(sum, w, x); }
  /// By hand, because compilers load and broadcast by an instruction of its own.
  static I add_four(I sum, I w, const std::byte* four) {
    __asm__("vpdpbusd %2%{1to16%}, %1, %0"
            : "+v"(sum)
            : "v"(w), "m"(*reinterpret_cast<const std::byte(*)[4]>(four)));
    return sum;
  }
  static I end(I sum, std::int32_t) { return sum; }
};

using NibbleProducts = ByteProducts;
using SixBitProducts = ByteProducts;
