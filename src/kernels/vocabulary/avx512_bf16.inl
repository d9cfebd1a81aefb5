// What AVX-512 BF16 adds to the vocabulary of avx512.inl: floats rounded to bf16 by one instruction, which
// takes subnormals for zeros.

struct RoundedPairs {
  using Weight = Bf16;

  /// Both rounded, into the lower and the upper halves of 32 bits.
  static V pair(V even, V odd) {
    alignas(64) static constexpr std::uint16_t kInTurn[] = {0,  16, 1,  17, 2,  18, 3,  19, 4,  20, 5,
                                                            21, 6,  22, 7,  23, 8,  24, 9,  25, 10, 26,
                                                            11, 27, 12, 28, 13, 29, 14, 30, 15, 31};
    return _mm512_castsi512_ps(_mm512_permutexvar_epi16(
        load_int(kInTurn), reinterpret_cast<__m512i>(_mm512_cvtne2ps_pbh(odd, even))));
  }

  static void store_pair(std::byte* to, V even, V odd) { store_f32(to, pair(even, odd)); }
  static void store(void* to, V v) {
    _mm256_storeu_si256(static_cast<__m256i*>(to), reinterpret_cast<__m256i>(_mm512_cvtneps_pbh(v)));
  }
};
