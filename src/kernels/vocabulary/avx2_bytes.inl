// Products of bytes (see portable.inl) by AVX2 alone: unsigned by signed ones, pairs added up in 16 bits.

inline I add_pairs(I sum, I pairs) {
  return _mm256_add_epi32(sum, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}

struct ByteProducts {
  static constexpr int kBias = 0;
  static constexpr bool kWide = true;
  static I begin(std::int32_t) { return _mm256_setzero_si256(); }
  static I add(I sum, I w, I x) {
    // With the sign moved from w to x, neither the unsigned operand, 0..128, nor a pair's sum is too large.
    return add_pairs(sum, _mm256_maddubs_epi16(_mm256_abs_epi8(w), _mm256_sign_epi8(x, w)));
  }
  static I end(I sum, std::int32_t) { return sum; }
};

/// Sums in 16 bits, where sixteen products of 15 * 127 still fit.
struct NibbleProducts {
  static constexpr bool kWide = false;
  static I begin(std::int32_t) { return _mm256_setzero_si256(); }
  static I add(I sum, I w, I x) { return _mm256_add_epi16(sum, _mm256_maddubs_epi16(w, x)); }
  static I end(I sum, std::int32_t start) { return add_pairs(set_int(start), sum); }
};

/// Two products of 63 * 127 fit into 16 bits.
struct SixBitProducts {
  static constexpr bool kWide = true;
  static I begin(std::int32_t start) { return set_int(start); }
  static I add(I sum, I w, I x) { return add_pairs(sum, _mm256_maddubs_epi16(w, x)); }
  static I end(I sum, std::int32_t) { return sum; }
};
