// Products of bytes (see portable.inl) by AVX-VNNI: VPDPBUSD multiplies unsigned by signed ones.

inline constexpr int kByteBias = 128;

inline I dot_bytes(I start, const I (&w)[8], const std::byte* x) {
  QGEN_UNROLL
  for (int i = 0; i < 8; ++i) start = _mm256_dpbusd_avx_epi32(start, w[i], four_bytes(x, i));
  return start;
}

inline I dot_nibbles(I start, const I (&w)[8], const std::byte* x) {
  return dot_bytes(start, w, x);
}
