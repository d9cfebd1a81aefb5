// Panels of 8-bit or 4-bit integers.
//
// A panel has kLanes rows, one in each lane, so that sums need no folding. It is a sequence of blocks of
// kBlockGroups groups of kGroup columns; the last one is filled up with zeros. A block of q8 has, group by
// group, eight vectors [kLanes][4 consecutive columns] of bytes; one of q4 has eight vectors, the first
// group's in the low nibbles and the second one's in the high ones. After them come [kBlockGroups][kLanes]
// scales in f16, which are just one vector, so that all vectors of all blocks are aligned.

inline constexpr std::int64_t kBlockGroups = 2;
inline constexpr std::int64_t kBlockColumns = kBlockGroups * kGroup;
inline constexpr int kGroupVectors = static_cast<int>(kGroup) / 4;

/// Vectors of integers that live in registers.
template <int N>
using IntegerRow = I[static_cast<std::size_t>(N)];
template <int M, int N>
using IntegerGrid = I[static_cast<std::size_t>(M)][static_cast<std::size_t>(N)];
/// Weights of one group: bytes of four columns in every lane.
using Quads = IntegerRow<kGroupVectors>;

template <int WeightVectors>
struct BlockOf {
  static constexpr std::int64_t kVectorBytes = kLanes * 4;
  static constexpr std::int64_t kScales = WeightVectors * kVectorBytes;
  static constexpr std::int64_t kBytes = kScales + kVectorBytes;

  static V scale(const std::byte* block, int group) {
    return load_f16(block + kScales + group * kVectorBytes / kBlockGroups);
  }
};

struct Q8 : BlockOf<kBlockGroups * kGroupVectors> {
  using Products = ByteProducts;
  /// What was added to the weights.
  static constexpr int kBias = ByteProducts::kBias;

  static I weights(const std::byte* block, int group, int i) {
    return load_int(block + (group * kGroupVectors + i) * kVectorBytes);
  }
};

struct Q4 : BlockOf<kGroupVectors> {
  using Products = NibbleProducts;
  static constexpr int kBias = 8;

  static I weights(const std::byte* block, int group, int i) {
    const I both = load_int(block + i * kVectorBytes);
    return group == 0 ? low_nibbles(both) : high_nibbles(both);
  }
};

template <class W>
std::size_t integer_panel_bytes(std::int64_t cols) noexcept {
  return static_cast<std::size_t>(round_up(round_up(cols, kBlockColumns) / kBlockColumns * W::kBytes, 64));
}
