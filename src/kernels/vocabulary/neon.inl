// The vector vocabulary (see portable.inl) for AArch64 with dot products of bytes: four floats.

using V = float32x4_t;
using I = int32x4_t;

inline constexpr int kRegisters = 32;
inline constexpr std::int64_t kLanes = 4;
inline constexpr int kTileTokens = 4;
inline constexpr int kFewTile = 4;
inline constexpr int kFewChains = 4;
inline constexpr int kBytePanels = 4;
inline constexpr int kByteTokens = 3;
inline constexpr int kByteFewTokens = 8;
inline constexpr int kWeightLocality = 3;

inline V zero() {
  return vdupq_n_f32(0.0f);
}

inline V set(float value) {
  return vdupq_n_f32(value);
}

inline V load(const void* from) {
  return vreinterpretq_f32_u8(vld1q_u8(static_cast<const std::uint8_t*>(from)));
}

inline void store(void* to, V v) {
  vst1q_u8(static_cast<std::uint8_t*>(to), vreinterpretq_u8_f32(v));
}

inline uint16x4_t load_u16(const void* from) {
  return vreinterpret_u16_u8(vld1_u8(static_cast<const std::uint8_t*>(from)));
}

inline void store_u16(void* to, uint16x4_t v) {
  vst1_u8(static_cast<std::uint8_t*>(to), vreinterpret_u8_u16(v));
}

inline V widen_f16(uint16x4_t bits) {
  return vcvt_f32_f16(vreinterpret_f16_u16(bits));
}

inline V load_f16(const void* from) {
  return widen_f16(load_u16(from));
}

inline V load_bf16(const void* from) {
  return vreinterpretq_f32_u32(vshll_n_u16(load_u16(from), 16));
}

inline V low_bf16(V words) {
  return vreinterpretq_f32_u32(vshlq_n_u32(vreinterpretq_u32_f32(words), 16));
}

inline V high_bf16(V words) {
  return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(words), vdupq_n_u32(0xFFFF0000u)));
}

inline void store_f16(void* to, V v) {
  store_u16(to, vreinterpret_u16_f16(vcvt_f16_f32(v)));
}

/// Rounded in the upper half of every lane; the lower one is of no meaning.
inline uint32x4_t round_bf16(V v) {
  const uint32x4_t bits = vreinterpretq_u32_f32(v);
  const uint32x4_t odd = vandq_u32(vshrq_n_u32(bits, 16), vdupq_n_u32(1));
  const uint32x4_t rounded = vaddq_u32(bits, vaddq_u32(odd, vdupq_n_u32(0x7FFF)));
  const uint32x4_t quiet = vorrq_u32(bits, vdupq_n_u32(0x400000));
  return vbslq_u32(vceqq_f32(v, v), rounded, quiet);
}

inline void store_bf16(void* to, V v) {
  store_u16(to, vshrn_n_u32(round_bf16(v), 16));
}

inline V pair_bf16(V even, V odd) {
  return vreinterpretq_f32_u32(vsriq_n_u32(round_bf16(odd), round_bf16(even), 16));
}

inline V fma(V a, V b, V c) {
  return vfmaq_f32(c, a, b);
}

inline V min(V x, V y) {
  return vbslq_f32(vcltq_f32(x, y), x, y);
}

inline V max(V x, V y) {
  return vbslq_f32(vcgtq_f32(x, y), x, y);
}

inline V abs(V x) {
  return vabsq_f32(x);
}

inline V round(V x) {
  return vrndnq_f32(x);
}

inline V ldexp(V x, V n) {
  // 2^128 is no float, 2 * 2^127 is.
  const I exponent = vaddq_s32(vcvtq_s32_f32(n), vdupq_n_s32(126));
  return (x + x) * vreinterpretq_f32_s32(vshlq_n_s32(exponent, 23));
}

inline V zero_below(V v, V x, float limit) {
  return vbslq_f32(vcltq_f32(x, set(limit)), zero(), v);
}

inline bool all_below(V x, float limit) {
  return vminvq_u32(vcltq_f32(x, set(limit))) != 0;
}

inline float sum(V v) {
  const float32x2_t halves = vadd_f32(vget_low_f32(v), vget_high_f32(v));
  return vget_lane_f32(halves, 0) + vget_lane_f32(halves, 1);
}

inline float largest(V v) {
  const float even =
      vgetq_lane_f32(v, 0) > vgetq_lane_f32(v, 2) ? vgetq_lane_f32(v, 0) : vgetq_lane_f32(v, 2);
  const float odd = vgetq_lane_f32(v, 1) > vgetq_lane_f32(v, 3) ? vgetq_lane_f32(v, 1) : vgetq_lane_f32(v, 3);
  return even > odd ? even : odd;
}

inline V pairs_even(V a, V b) {
  return vreinterpretq_f32_f64(vtrn1q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
}

inline V pairs_odd(V a, V b) {
  return vreinterpretq_f32_f64(vtrn2q_f64(vreinterpretq_f64_f32(a), vreinterpretq_f64_f32(b)));
}

inline void transpose(V (&r)[kLanes]) {
  const V a = vtrn1q_f32(r[0], r[1]), b = vtrn2q_f32(r[0], r[1]);
  const V c = vtrn1q_f32(r[2], r[3]), d = vtrn2q_f32(r[2], r[3]);
  r[0] = pairs_even(a, c);
  r[1] = pairs_even(b, d);
  r[2] = pairs_odd(a, c);
  r[3] = pairs_odd(b, d);
}

inline V where_greater(V a, V b, V x, V y) {
  return vbslq_f32(vcgtq_f32(a, b), x, y);
}

inline I load_int(const void* from) {
  return vreinterpretq_s32_u8(vld1q_u8(static_cast<const std::uint8_t*>(from)));
}

inline void store_int(void* to, I v) {
  vst1q_u8(static_cast<std::uint8_t*>(to), vreinterpretq_u8_s32(v));
}

inline I set_int(std::int32_t value) {
  return vdupq_n_s32(value);
}

inline I to_int(V v) {
  return vcvtq_s32_f32(v);
}

inline V to_float(I v) {
  return vcvtq_f32_s32(v);
}

inline I add_int(I a, I b) {
  return vaddq_s32(a, b);
}

template <int n>
I shift_left(I v) {
  return vshlq_n_s32(v, n);
}

template <int n>
I shift_right(I v) {
  return vshrq_n_s32(v, n);
}

inline I low_nibbles(I v) {
  return vreinterpretq_s32_u8(vandq_u8(vreinterpretq_u8_s32(v), vdupq_n_u8(15)));
}

inline I high_nibbles(I v) {
  return vreinterpretq_s32_u8(vshrq_n_u8(vreinterpretq_u8_s32(v), 4));
}

inline V load_bytes(const void* from) {
  std::int32_t four;
  std::memcpy(&four, from, sizeof four);
  return to_float(vmovl_s16(vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vdup_n_s32(four))))));
}

inline void store_bytes(void* to, V v) {
  const int16x4_t halves = vmovn_s32(to_int(v));
  const int32x2_t bytes = vreinterpret_s32_s8(vmovn_s16(vcombine_s16(halves, halves)));
  const std::int32_t four = vget_lane_s32(bytes, 0);
  std::memcpy(to, &four, sizeof four);
}

struct ByteProducts {
  static constexpr int kBias = 0;
  static constexpr bool kWide = true;
  static I begin(std::int32_t start) { return set_int(start); }
  static I add(I sum, I w, I x) {
    // By hand, because clang 14 hides the intrinsic from regions.
    __asm__("sdot %0.4s, %1.16b, %2.16b" : "+w"(sum) : "w"(w), "w"(x));
    return sum;
  }
  static I end(I sum, std::int32_t) { return sum; }
};

using NibbleProducts = ByteProducts;
using SixBitProducts = ByteProducts;
