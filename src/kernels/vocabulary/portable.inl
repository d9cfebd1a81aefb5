// The vector vocabulary of any processor, by the compiler's own vectors of four floats (SSE2 on x86-64, NEON
// on AArch64). It is also the definition of the vocabulary; every other file of this folder supplies the same
// names:
//
//   kRegisters, kLanes   vector registers of the processor, floats in a vector
//   kTileTokens          tokens of a register tile of `many`; at most kLanes
//   kFewTile, kFewChains tokens of a register tile of `few`, independent sums for each
//   V                    vector of floats with the operators + - * /
//   zero, set, load, store          as they say; memory needs no alignment
//   load_f16, load_bf16             kLanes 16-bit values, widened exactly
//   low_bf16, high_bf16             the value in that half of every lane's 32 bits, widened
//   store_f16, store_bf16           rounded to nearest, ties to even
//   pair_bf16(even, odd)            both so rounded, into the lower and the upper halves of 32 bits
//   fma(a, b, c)         a * b + c, in one rounding where the processor can
//   min(x, y), max(x, y) x < y ? x : y and x > y ? x : y, so y where either is NaN
//   abs, round           round to an integer; |x| < 2^22
//   ldexp(x, n)          x * 2^n for integral n in -125..128
//   zero_below(v, x, limit)         v where x >= limit or x is NaN, else 0
//   all_below(x, limit)  whether x < limit in every lane; false for NaN
//   sum, largest         over the lanes, halves folded onto each other
//   transpose(r)         of kLanes vectors
//   where_greater(a, b, x, y)       x where a > b, else y
//
// and for products of integers, where each lane has 32 bits or four bytes:
//
//   kBytePanels, kByteTokens        vectors and tokens of a register tile of products of bytes
//   kByteFewTokens       tokens of one with a single vector
//   kWeightLocality      cache level that `few` asks for weights in, as of __builtin_prefetch: 3 the first, 2
//                        the second
//   I                    vector of integers with the operators |, & and ^
//   load_int, store_int, set_int    as load, store and set
//   to_int, to_float     of integers; to_float rounds what exceeds 2^24
//   add_int(a, b)        of every lane
//   shift_left<n>, shift_right<n>   of every lane; what comes in from the left may be anything
//   low_nibbles, high_nibbles       that half of every byte, 0..15
//   load_bytes           kLanes signed bytes as floats
//   store_bytes(to, v)   integers in -128..127 as kLanes signed bytes
//   ByteProducts         a sum for every lane: begin(start), then up to eight times add(sum, w, x), four
//                        products of bytes in w, -128..127 plus kBias, by signed ones in x, -127..127, then
//                        end(sum, start), which includes start, 0 where kBias is 0. kBias is 128 where the
//                        processor multiplies unsigned by signed bytes, else 0. Where kWide, the sum has 32
//                        bits all along and includes start from the beginning, so that it may be any number.
//                        Perhaps also add_four(sum, w, from): x is the four bytes there in every lane.
//   NibbleProducts, SixBitProducts  the same for w of 0..15 and of 0..63; start may be anything

using V = float __attribute__((vector_size(16)));
using I = std::int32_t __attribute__((vector_size(16)));
using U = std::uint32_t __attribute__((vector_size(16)));
using U16 = std::uint16_t __attribute__((vector_size(8)));
using I16 = std::int16_t __attribute__((vector_size(16)));

inline constexpr int kRegisters = 16;
inline constexpr std::int64_t kLanes = 4;
inline constexpr int kTileTokens = 4;
inline constexpr int kFewTile = 3;
inline constexpr int kFewChains = 4;
inline constexpr int kBytePanels = 1;
inline constexpr int kByteTokens = 4;
inline constexpr int kByteFewTokens = 4;
inline constexpr int kWeightLocality = 3;

inline V zero() {
  return V{};
}

inline V set(float value) {
  return V{value, value, value, value};
}

inline V load(const void* from) {
  V v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

inline void store(void* to, V v) {
  std::memcpy(to, &v, sizeof v);
}

inline U load_u16(const void* from) {
  U16 v;
  std::memcpy(&v, from, sizeof v);
  return __builtin_convertvector(v, U);
}

inline V load_f16(const void* from) {
  const U bits = load_u16(from);
  // Read as the top of a float, a half has an exponent too small by 112; the product also normalises
  // subnormals.
  const V scaled = reinterpret_cast<V>((bits & 0x7FFFu) << 13) * 0x1p112f;
  const U not_finite = reinterpret_cast<U>((bits & 0x7C00u) == 0x7C00u) & 0x7F800000u;
  return reinterpret_cast<V>(reinterpret_cast<U>(scaled) | not_finite | ((bits & 0x8000u) << 16));
}

inline V load_bf16(const void* from) {
  return reinterpret_cast<V>(load_u16(from) << 16);
}

inline V low_bf16(V words) {
  return reinterpret_cast<V>(reinterpret_cast<U>(words) << 16);
}

inline V high_bf16(V words) {
  return reinterpret_cast<V>(reinterpret_cast<U>(words) & 0xFFFF0000u);
}

inline void store_f16(void* to, V v) {
  std::uint16_t halves[kLanes];
  for (int i = 0; i < kLanes; ++i) halves[i] = f32_to_f16(v[i]);
  std::memcpy(to, halves, sizeof halves);
}

inline void store_bf16(void* to, V v) {
  std::uint16_t halves[kLanes];
  for (int i = 0; i < kLanes; ++i) halves[i] = f32_to_bf16(v[i]);
  std::memcpy(to, halves, sizeof halves);
}

inline V pair_bf16(V even, V odd) {
  U words;
  for (int i = 0; i < kLanes; ++i) {
    words[i] = f32_to_bf16(even[i]) | static_cast<std::uint32_t>(f32_to_bf16(odd[i])) << 16;
  }
  return reinterpret_cast<V>(words);
}

inline V fma(V a, V b, V c) {
  return a * b + c;
}

inline V min(V x, V y) {
  return x < y ? x : y;
}

inline V max(V x, V y) {
  return x > y ? x : y;
}

inline V abs(V x) {
  return reinterpret_cast<V>(reinterpret_cast<U>(x) & 0x7FFFFFFFu);
}

inline V round(V x) {
  // Adding 1.5 * 2^23 leaves no bits for a fraction.
  return (x + 0x1.8p23f) - 0x1.8p23f;
}

inline V ldexp(V x, V n) {
  // 2^128 is no float, 2 * 2^127 is.
  const I exponent = __builtin_convertvector(n, I) + 126;
  return (x + x) * reinterpret_cast<V>(reinterpret_cast<U>(exponent) << 23);
}

inline V zero_below(V v, V x, float limit) {
  return x < set(limit) ? zero() : v;
}

inline bool all_below(V x, float limit) {
  const I below = x < set(limit);
  return (below[0] & below[1] & below[2] & below[3]) != 0;
}

inline float sum(V v) {
  return (v[0] + v[2]) + (v[1] + v[3]);
}

inline float largest(V v) {
  const float even = v[0] > v[2] ? v[0] : v[2];
  const float odd = v[1] > v[3] ? v[1] : v[3];
  return even > odd ? even : odd;
}

inline void transpose(V (&r)[kLanes]) {
  const V a = __builtin_shufflevector(r[0], r[1], 0, 4, 1, 5);
  const V b = __builtin_shufflevector(r[0], r[1], 2, 6, 3, 7);
  const V c = __builtin_shufflevector(r[2], r[3], 0, 4, 1, 5);
  const V d = __builtin_shufflevector(r[2], r[3], 2, 6, 3, 7);
  r[0] = __builtin_shufflevector(a, c, 0, 1, 4, 5);
  r[1] = __builtin_shufflevector(a, c, 2, 3, 6, 7);
  r[2] = __builtin_shufflevector(b, d, 0, 1, 4, 5);
  r[3] = __builtin_shufflevector(b, d, 2, 3, 6, 7);
}

inline V where_greater(V a, V b, V x, V y) {
  return a > b ? x : y;
}

inline I load_int(const void* from) {
  I v;
  std::memcpy(&v, from, sizeof v);
  return v;
}

inline void store_int(void* to, I v) {
  std::memcpy(to, &v, sizeof v);
}

inline I set_int(std::int32_t value) {
  return I{value, value, value, value};
}

inline I to_int(V v) {
  return __builtin_convertvector(v, I);
}

inline V to_float(I v) {
  return __builtin_convertvector(v, V);
}

inline I add_int(I a, I b) {
  return a + b;
}

template <int n>
I shift_left(I v) {
  return v << n;
}

template <int n>
I shift_right(I v) {
  return v >> n;
}

inline I low_nibbles(I v) {
  return v & 0x0F0F0F0F;
}

inline I high_nibbles(I v) {
  return (v >> 4) & 0x0F0F0F0F;
}

inline V load_bytes(const void* from) {
  std::int8_t bytes[kLanes];
  std::memcpy(bytes, from, sizeof bytes);
  return __builtin_convertvector((I{bytes[0], bytes[1], bytes[2], bytes[3]}), V);
}

inline void store_bytes(void* to, V v) {
  std::int8_t bytes[kLanes];
  for (int i = 0; i < kLanes; ++i) bytes[i] = static_cast<std::int8_t>(v[i]);
  std::memcpy(to, bytes, sizeof bytes);
}

struct ByteProducts {
  static constexpr int kBias = 0;
  static constexpr bool kWide = true;
  static I begin(std::int32_t start) { return set_int(start); }
  static I add(I sum, I w, I x) {
    const I16 a = reinterpret_cast<I16>(w), b = reinterpret_cast<I16>(x);
    // Two products of bytes fit into 16 bits.
    const I pairs = reinterpret_cast<I>(((a << 8) >> 8) * ((b << 8) >> 8) + (a >> 8) * (b >> 8));
    return sum + ((pairs << 16) >> 16) + (pairs >> 16);
  }
  static I end(I sum, std::int32_t) { return sum; }
};

using NibbleProducts = ByteProducts;
using SixBitProducts = ByteProducts;
