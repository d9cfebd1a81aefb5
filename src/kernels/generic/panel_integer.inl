// Panels of integers of 8, 6 or 4 bits.
//
// A panel has kLanes rows, one in each lane, so that sums need no folding. It is a sequence of blocks of
// kBlockGroups groups of kGroup columns; what the last one has beyond the last column is multiplied by zeros.
// A block has the integers, then scales and, where the type has them, minima: a weight is scale * (integer -
// kBias) + minimum. Of q4_k and q6_k four blocks form a super-block and are followed by the f16 factors of
// their scales and minima, which are bytes then. Except for q6_k's factors, of half a vector, everything is
// whole vectors and so aligned.
//
// Integers are bytes of four consecutive columns in every lane, eight vectors [kLanes][4 columns] for a
// group. Nibbles of two groups share a vector, the first group's are the low ones; for q6_k vectors j and j +
// 4 of both groups share vector j of the upper two bits.

inline constexpr std::int64_t kBlockGroups = 2;
inline constexpr std::int64_t kBlockColumns = kBlockGroups * kGroup;
inline constexpr int kGroupVectors = static_cast<int>(kGroup) / 4;
inline constexpr std::int64_t kVectorBytes = kLanes * 4;

/// Vectors of integers that live in registers.
template <int N>
using IntegerRow = I[static_cast<std::size_t>(N)];
template <int M, int N>
using IntegerGrid = I[static_cast<std::size_t>(M)][static_cast<std::size_t>(N)];
/// Weights of one group: bytes of four columns in every lane.
using Quads = IntegerRow<kGroupVectors>;

/// What the integers of an input are multiplied by to make up for a bias; see InputHalf.
enum Start : int { kStartQ8, kStartQ4, kStartQ6K, kStarts = kStartQ6K + 2 };

/// Integers, then scales in f16 for each group and perhaps minima.
template <int WeightVectors, bool Minima>
struct ScaledBlocks {
  static constexpr bool kHasMinimum = Minima;
  static constexpr int kRuns = 1;             ///< parts of a group with a scale of their own
  static constexpr std::int64_t kBlocks = 1;  ///< in a super-block
  static constexpr std::int64_t kColumns = kBlocks * kBlockColumns;
  static constexpr std::int64_t kScales = WeightVectors * kVectorBytes;
  static constexpr std::int64_t kMinima = kScales + kVectorBytes;
  static constexpr std::int64_t kBlockBytes = kMinima + (Minima ? kVectorBytes : 0);
  static constexpr std::int64_t kBytes = kBlocks * kBlockBytes;  ///< of a super-block

  struct Factors {};
  static Factors factors(const std::byte*) { return {}; }
  static V scale(const std::byte* block, const Factors&, int group, int) {
    return load_f16(block + kScales + group * kVectorBytes / kBlockGroups);
  }
  static V minimum(const std::byte* block, const Factors&, int group) {
    return load_f16(block + kMinima + group * kVectorBytes / kBlockGroups);
  }
};

struct Q8 : ScaledBlocks<kBlockGroups * kGroupVectors, false> {
  using Products = ByteProducts;
  static constexpr int kBulkHalves = 2;  ///< bytes of X for very many tokens
  /// What was added to the weights.
  static constexpr int kBias = ByteProducts::kBias;
  static constexpr int kStart = kStartQ8;

  static I weights(const std::byte* block, int group, int i) {
    return load_int(block + (group * kGroupVectors + i) * kVectorBytes);
  }
};

inline I nibbles_of(const std::byte* block, int group, int i) {
  const I both = load_int(block + i * kVectorBytes);
  return group == 0 ? low_nibbles(both) : high_nibbles(both);
}

struct Q4 : ScaledBlocks<kGroupVectors, false> {
  using Products = NibbleProducts;
  static constexpr int kBulkHalves = 1;
  static constexpr int kBias = 8;
  static constexpr int kStart = kStartQ4;

  static I weights(const std::byte* block, int group, int i) { return nibbles_of(block, group, i); }
};

struct Q4_1 : ScaledBlocks<kGroupVectors, true> {
  using Products = NibbleProducts;
  static constexpr int kBulkHalves = 1;
  static constexpr int kBias = 0;

  static I weights(const std::byte* block, int group, int i) { return nibbles_of(block, group, i); }
};

/// Scales and minima are bytes [kBlockGroups][kLanes] each, with a factor in f16 for each row.
struct Q4K {
  using Products = NibbleProducts;
  static constexpr int kBulkHalves = 1;
  static constexpr int kBias = 0;
  static constexpr bool kHasMinimum = true;
  static constexpr int kRuns = 1;
  static constexpr std::int64_t kBlocks = 4;
  static constexpr std::int64_t kColumns = kBlocks * kBlockColumns;
  static constexpr std::int64_t kScales = kGroupVectors * kVectorBytes;
  static constexpr std::int64_t kMinima = kScales + kBlockGroups * kLanes;
  static constexpr std::int64_t kBlockBytes = kScales + kVectorBytes;
  static constexpr std::int64_t kFactors = kBlocks * kBlockBytes;
  static constexpr std::int64_t kBytes = kFactors + kVectorBytes;

  struct Factors {
    V scale, minimum;
  };
  static Factors factors(const std::byte* super_block) {
    return {load_f16(super_block + kFactors), load_f16(super_block + kFactors + kVectorBytes / 2)};
  }
  static V scale(const std::byte* block, const Factors& f, int group, int) {
    return f.scale * load_bytes(block + kScales + group * kLanes);
  }
  static V minimum(const std::byte* block, const Factors& f, int group) {
    return f.minimum * load_bytes(block + kMinima + group * kLanes);
  }
  static I weights(const std::byte* block, int group, int i) { return nibbles_of(block, group, i); }
};

/// Nibbles, upper bits, then signed bytes of scales [kBlockGroups][kRuns][kLanes].
struct Q6K {
  using Products = SixBitProducts;
  static constexpr int kBulkHalves = 2;
  static constexpr int kBias = 32;
  static constexpr int kStart = kStartQ6K;
  static constexpr bool kHasMinimum = false;
  static constexpr int kRuns = 2;
  static constexpr std::int64_t kBlocks = 4;
  static constexpr std::int64_t kColumns = kBlocks * kBlockColumns;
  static constexpr std::int64_t kUpper = kGroupVectors * kVectorBytes;
  static constexpr std::int64_t kScales = kUpper + kUpper / 2;
  static constexpr std::int64_t kBlockBytes = kScales + kVectorBytes;
  static constexpr std::int64_t kFactors = kBlocks * kBlockBytes;
  static constexpr std::int64_t kBytes = kFactors + kVectorBytes / 2;

  struct Factors {
    V scale;
  };
  static Factors factors(const std::byte* super_block) { return {load_f16(super_block + kFactors)}; }
  static V scale(const std::byte* block, const Factors& f, int group, int run) {
    return f.scale * load_bytes(block + kScales + (group * kRuns + run) * kLanes);
  }

  static I weights(const std::byte* block, int group, int i) {
    const I pairs = load_int(block + kUpper + i % (kGroupVectors / 2) * kVectorBytes);
    return nibbles_of(block, group, i) |
           (upper_pairs(pairs, group * kRuns + i / (kGroupVectors / 2)) & set_int(0x30303030));
  }

 private:
  /// Pair n of bits of every byte moved to bits 4 and 5.
  static I upper_pairs(I pairs, int n) {
    if (n == 0) return shift_left<4>(pairs);
    if (n == 1) return shift_left<2>(pairs);
    return n == 2 ? pairs : shift_right<2>(pairs);
  }
};

template <class W>
std::size_t integer_panel_bytes(std::int64_t cols) noexcept {
  return static_cast<std::size_t>(round_up(round_up(cols, W::kColumns) / W::kColumns * W::kBytes, 64));
}
