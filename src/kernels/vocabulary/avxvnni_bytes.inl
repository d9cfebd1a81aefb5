// Products of bytes (see portable.inl) by AVX-VNNI.

struct ByteProducts {
  static constexpr int kBias = 128;
  static constexpr bool kWide = true;
  static I begin(std::int32_t start) { return set_int(start); }
  static I add(I sum, I w, I x) { return _mm256_dpbusd_avx_epi32(sum, w, x); }
  static I end(I sum, std::int32_t) { return sum; }
};

using NibbleProducts = ByteProducts;
using SixBitProducts = ByteProducts;
