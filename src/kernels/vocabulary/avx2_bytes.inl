// Products of bytes (see portable.inl) by AVX2 alone: unsigned by signed ones, pairs added up in 16 bits.

inline constexpr int kByteBias = 0;

inline I dot_bytes(I start, const I (&w)[8], const std::byte* x) {
  QGEN_UNROLL
  for (int i = 0; i < 8; ++i) {
    // With the sign moved from x to w, neither the unsigned operand nor a pair's sum is too large.
    const I four = four_bytes(x, i);
    const I pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(four), _mm256_sign_epi8(w[i], four));
    start = _mm256_add_epi32(start, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
  }
  return start;
}

inline I dot_nibbles(I start, const I (&w)[8], const std::byte* x) {
  // Sixteen products of 15 * 127 still fit into 16 bits.
  I pairs = _mm256_setzero_si256();
  QGEN_UNROLL
  for (int i = 0; i < 8; ++i) {
    pairs = _mm256_add_epi16(pairs, _mm256_maddubs_epi16(w[i], four_bytes(x, i)));
  }
  return _mm256_add_epi32(start, _mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
}
