// Stored blocks as panels of integers, value by value; see panel_integer.inl for what lies where.

/// Columns of a block, which lie row by row in the parts from `column` on, as vectors of rows.
inline void gather_quads(const BlockParts (&rows)[kLanes], std::int64_t column,
                         Quads (&quads)[kBlockGroups]) {
  for (std::int64_t c = 0; c < kBlockColumns; c += 4 * kLanes) {
    V four[kLanes];  // columns of every lane, moved as if they were floats
    QGEN_UNROLL
    for (std::int64_t r = 0; r < kLanes; ++r) four[r] = load(rows[r].q.data() + column + c);
    transpose(four);
    QGEN_UNROLL
    for (std::int64_t i = 0; i < kLanes; ++i) {
      quads[(c / 4 + i) / kGroupVectors][(c / 4 + i) % kGroupVectors] = reinterpret_cast<I>(four[i]);
    }
  }
}

/// f16 numbers of all lanes.
template <class Number>
void store_numbers(std::byte* to, const Number& number_of) {
  std::uint16_t numbers[kLanes];
  for (std::size_t r = 0; r < kLanes; ++r) numbers[r] = number_of(r);
  std::memcpy(to, numbers, sizeof numbers);
}

/// Signed bytes of all lanes.
template <class Number>
void store_byte_numbers(std::byte* to, const Number& number_of) {
  std::int8_t numbers[kLanes];
  for (std::size_t r = 0; r < kLanes; ++r) numbers[r] = number_of(r);
  std::memcpy(to, numbers, sizeof numbers);
}

template <int WeightVectors, bool Minima>
void store_parts(ScaledBlocks<WeightVectors, Minima>, const BlockParts (&rows)[kLanes], std::byte* block) {
  using W = ScaledBlocks<WeightVectors, Minima>;
  for (std::size_t g = 0; g < kBlockGroups; ++g) {
    std::byte* to = block + static_cast<std::int64_t>(g) * kVectorBytes / kBlockGroups;
    store_numbers(to + W::kScales, [&](std::size_t r) { return rows[r].d[g]; });
    if constexpr (Minima) store_numbers(to + W::kMinima, [&](std::size_t r) { return rows[r].m[g]; });
  }
}

inline void store_parts(Q4K, const BlockParts (&rows)[kLanes], std::byte* super_block) {
  for (std::size_t g = 0; g < Q4K::kBlocks * kBlockGroups; ++g) {
    std::byte* block = super_block + static_cast<std::int64_t>(g) / kBlockGroups * Q4K::kBlockBytes;
    const std::int64_t at = static_cast<std::int64_t>(g) % kBlockGroups * kLanes;
    store_byte_numbers(block + Q4K::kScales + at, [&](std::size_t r) { return rows[r].scales[g]; });
    store_byte_numbers(block + Q4K::kMinima + at, [&](std::size_t r) { return rows[r].minima[g]; });
  }
  store_numbers(super_block + Q4K::kFactors, [&](std::size_t r) { return rows[r].d[0]; });
  store_numbers(super_block + Q4K::kFactors + kVectorBytes / 2, [&](std::size_t r) { return rows[r].m[0]; });
}

inline void store_parts(Q6K, const BlockParts (&rows)[kLanes], std::byte* super_block) {
  constexpr std::int64_t kBlockRuns = kBlockGroups * Q6K::kRuns;
  for (std::size_t run = 0; run < Q6K::kBlocks * kBlockRuns; ++run) {
    std::byte* block = super_block + static_cast<std::int64_t>(run) / kBlockRuns * Q6K::kBlockBytes;
    store_byte_numbers(block + Q6K::kScales + static_cast<std::int64_t>(run) % kBlockRuns * kLanes,
                       [&](std::size_t r) { return rows[r].scales[run]; });
  }
  store_numbers(super_block + Q6K::kFactors, [&](std::size_t r) { return rows[r].d[0]; });
}

/// Blocks of Columns columns and Bytes bytes that `read` reads.
template <class W, ReadBlock read, std::int64_t Columns, std::int64_t Bytes>
void pack_blocks(const std::byte* blocks, std::int64_t stride, std::int64_t rows, std::int64_t cols,
                 std::byte* panel) noexcept {
  // Rows that are missing stay zeros. Where the last block is half a one, its other half keeps what was there
  // before: inputs are zeros there.
  BlockParts parts[kLanes] = {};
  for (std::int64_t c = 0; c < cols; c += W::kColumns, panel += W::kBytes) {
    for (std::int64_t r = 0; r < rows; ++r) {
      for (std::int64_t i = c; i < std::min(c + W::kColumns, cols); i += Columns) {
        read(blocks + r * stride + i / Columns * Bytes, static_cast<std::size_t>((i - c) / kGroup), parts[r]);
      }
    }
    for (std::int64_t b = 0; b < W::kBlocks; ++b) {
      Quads quads[kBlockGroups];
      gather_quads(parts, b * kBlockColumns, quads);
      store_quads(W{}, quads, panel + b * W::kBlockBytes);
    }
    store_parts(W{}, parts, panel);
  }
}

constexpr std::array<PackBlocks, kWeightTypes> block_packing() {
  std::array<PackBlocks, kWeightTypes> pack{};
  const auto at = [&](DType dtype) -> PackBlocks& { return pack[static_cast<std::size_t>(dtype)]; };
  at(DType::q8_0) = pack_blocks<Q8, read_q8_0, 32, 34>;
  at(DType::q5_0) = pack_blocks<Q8, read_q5_0, 32, 22>;
  at(DType::iq4_nl) = pack_blocks<Q8, read_iq4_nl, 32, 18>;
  at(DType::q4_0) = pack_blocks<Q4, read_q4_0, 32, 18>;
  at(DType::q4_1) = pack_blocks<Q4_1, read_q4_1, 32, 20>;
  at(DType::q4_k) = pack_blocks<Q4K, read_q4_k, 256, 144>;
  at(DType::q3_k) = pack_blocks<Q6K, read_q3_k, 256, 110>;
  at(DType::q6_k) = pack_blocks<Q6K, read_q6_k, 256, 210>;
  return pack;
}
