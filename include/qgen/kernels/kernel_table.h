#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string_view>
#include <vector>

#include "qgen/kernels/packed_type.h"
#include "qgen/tensor/dtype.h"

namespace qgen {

// Kernels are arithmetic on raw memory: one thread, no allocation, no exceptions, no words of models. Lengths
// start at zero and need not be multiples of anything; pointers need not be aligned beyond their element
// type. Every output is computed in one fixed order of operations that depends neither on how many rows nor
// on how many tokens a call covers, so that neither threads nor batches change a result.

/// Y[tokens, rows] = X[tokens, cols] W[rows, cols]^T for a range of W's rows.
struct MatmulArgs {
  const std::byte* w = nullptr;  ///< the panel that the range starts with, on its first row
  std::int64_t rows = 0, cols = 0;
  const std::byte* input = nullptr;  ///< X as prepare() left it, all tokens; aligned to 4, faster at 64
  std::int64_t tokens = 0;
  float* y = nullptr;         ///< Y[0, first row of the range]
  std::int64_t y_stride = 0;  ///< floats from token to token
  std::byte* scratch =
      nullptr;  ///< scratch_bytes(cols), private to the calling thread; aligned to 4, faster at 64
};

/// One way to multiply by packed weights of one type.
struct MatmulKernel {
  /// Tokens prepared in one piece: ranges given to prepare() start at multiples of this.
  std::int64_t token_block = 1;
  /// Bytes of the prepared form of X[tokens, cols].
  std::size_t (*input_bytes)(std::int64_t tokens, std::int64_t cols) noexcept = nullptr;
  /// Bytes of scratch memory for multiply().
  std::size_t (*scratch_bytes)(std::int64_t cols) noexcept = nullptr;
  /// Writes the prepared form of tokens [begin, end) of X (x points at token 0, x_stride floats apart) to
  /// `input`.
  void (*prepare)(const float* x, std::int64_t x_stride, std::int64_t begin, std::int64_t end,
                  std::int64_t cols, std::byte* input) noexcept = nullptr;
  void (*multiply)(const MatmulArgs& args) noexcept = nullptr;
};

/// Tokens up to which PackedKernels::few and ::many are meant.
inline constexpr std::int64_t kFewTokens = 16;
inline constexpr std::int64_t kManyTokens = 128;

/// Multiplication by a matrix packed into panels: panel_rows neighbouring rows each, all columns, one after
/// the other without gaps, each panel_bytes(cols) long and, if the first is, aligned to 64 bytes. The last
/// one is filled up with rows of zeros. What is inside a panel is the table's own affair.
struct PackedKernels {
  std::int64_t panel_rows = 0;
  /// Bytes of one panel, a multiple of 64.
  std::size_t (*panel_bytes)(std::int64_t cols) noexcept = nullptr;
  /// Writes one panel from `rows` (1..panel_rows) rows of floats, `stride` floats apart. Rounds to the type:
  /// f16 and bf16 to nearest even; q8 (-127..127) by the scale of f16 with the least sum of squared errors
  /// among some near largest / 127 (largest: of |w| in the group); q4 (-8..7) by the scale, positive or
  /// negative, with the least weighted sum of squared errors among those tried. A group with a NaN or an
  /// infinity, or too large for an f16 scale, becomes NaN, so that it is noticed when it is used. nullptr
  /// where a type is made of stored blocks only: q4_1, q4_k, q6_k.
  void (*pack)(const float* w, std::int64_t stride, std::int64_t rows, std::int64_t cols,
               std::byte* panel) noexcept = nullptr;
  /// Up to kFewTokens are multiplied by `few`, up to kManyTokens by `many`, more by `bulk`. f32, f16 and bf16
  /// keep inputs in f32. Types of integers round them to 15 bits by groups of kGroup (scale: largest / 16319,
  /// in f32), multiply integers exactly and add the products of columns with a scale of their own, scaled,
  /// and the minima times sums of inputs in one order, so that `few` and `many` agree bit for bit there.
  /// `bulk` may instead round inputs, and the values of weights, to bf16, and inputs of weights that have 4
  /// bits or are rotated to 8 bits by groups (scale: largest / 127). Kernels with the same `prepare` and
  /// `token_block` take the same prepared input.
  MatmulKernel few, many, bulk;

  [[nodiscard]] const MatmulKernel& for_tokens(std::int64_t tokens) const noexcept {
    if (tokens <= kFewTokens) return few;
    return tokens <= kManyTokens ? many : bulk;
  }
};

/// Types of cached keys and values. f16 carries a power-of-two scale for each vector, so that its range is
/// that of f32; q8 is bytes -127..127 with the scale largest / 127 for each vector, NaN where the vector is
/// not finite.
enum class KvType : std::uint8_t { f32, f16, bf16, q8 };
inline constexpr std::size_t kKvTypes = 4;

/// Positions in one chunk of the cache; softmax is computed chunk by chunk and merged (Dao et al. 2023,
/// flash-decoding).
inline constexpr std::int64_t kKvChunk = 256;
/// Positions whose keys lie side by side.
inline constexpr std::int64_t kKvLanes = 16;

/// Cached keys and values of one layer and key/value head for kKvChunk positions.
/// k[kKvChunk / kKvLanes][head_dim][kKvLanes], v[kKvChunk][head_dim]; both in elements of the KvType.
struct KvChunk {
  std::byte* k = nullptr;
  std::byte* v = nullptr;
  /// [kKvChunk]: the vector is scale times what is stored. Only f16 and q8 have them; others leave them
  /// alone.
  float* k_scale = nullptr;
  float* v_scale = nullptr;
};

/// Attention of some queries to one chunk.
struct AttendArgs {
  const float* q = nullptr;   ///< q[queries, head_dim], already multiplied by 1/sqrt(head_dim)
  std::int64_t q_stride = 0;  ///< floats
  std::int64_t queries = 0;
  std::int64_t head_dim = 0;
  KvChunk chunk;
  const std::int32_t* visible =
      nullptr;                      ///< [queries]: how many leading positions each query sees, 0..kKvChunk
  float* out = nullptr;             ///< [queries, head_dim]: sum of exp(score - max) * v
  std::int64_t out_stride = 0;      ///< floats
  float* max = nullptr;             ///< [queries]: largest score, -inf where nothing is visible
  float* sum = nullptr;             ///< [queries]: sum of exp(score - max), 0 where nothing is visible
  float* scratch = nullptr;         ///< attend_scratch(head_dim) floats, private to the calling thread
  const std::byte* next = nullptr;  ///< keys that will be wanted next, to bring them near; or nothing
};
/// Queries that one attend() call may have at most.
inline constexpr std::int64_t kAttendQueries = 64;
/// Floats of scratch memory for heads of that size: scores, and for attend_bulk a chunk, queries and scores
/// in bf16.
constexpr std::int64_t attend_scratch(std::int64_t head_dim) noexcept {
  const std::int64_t padded = (head_dim + 2 * kKvLanes - 1) / (2 * kKvLanes) * 2 * kKvLanes;
  return kAttendQueries * kKvChunk * 3 / 2 + (kKvChunk + kAttendQueries / 2) * padded;
}

struct KvKernels {
  /// Appends one key and one value vector at `position` (0..kKvChunk-1) of the chunk.
  void (*store)(const float* k, const float* v, std::int64_t head_dim, std::int64_t position,
                const KvChunk& chunk) noexcept = nullptr;
  void (*attend)(const AttendArgs& args) noexcept = nullptr;
  /// The same for steps of more than kManyTokens tokens: may round queries, keys, values and softmax to bf16.
  void (*attend_bulk)(const AttendArgs& args) noexcept = nullptr;
};

/// Arg-max over a range: the lowest index of the largest value.
struct BestLogit {
  std::int64_t index = -1;  ///< -1 for an empty range or where no value is above -inf
  float value = -std::numeric_limits<float>::infinity();
  std::int64_t not_finite = -1;  ///< lowest index of a NaN or +inf; -1: none
};

/// Reading speed and peak arithmetic of the processor by this table's widest instructions.
struct ProbeKernels {
  /// Reads all bytes (a multiple of 4096) in address order; the result only keeps the loads alive.
  std::uint64_t (*read)(const std::byte* data, std::size_t bytes) noexcept = nullptr;
  /// Runs `rounds` rounds of independent multiply-adds in registers and returns how many operations (a
  /// multiply-add counts two) that were; nullptr where the table has no such instruction.
  double (*f32)(std::int64_t rounds) noexcept = nullptr;
  double (*bf16)(std::int64_t rounds) noexcept = nullptr;
  double (*int8)(std::int64_t rounds) noexcept = nullptr;
};

/// Writes a panel of the type packed_type_of(DType) from `rows` (1..panel_rows) rows of stored blocks,
/// `stride` bytes apart and at any address, value by value as they are. `cols`: whole blocks.
using PackBlocks = void (*)(const std::byte* blocks, std::int64_t stride, std::int64_t rows,
                            std::int64_t cols, std::byte* panel) noexcept;

/// All arithmetic for one instruction set. Immutable.
struct KernelTable {
  std::string_view name;
  std::array<PackedKernels, kPackedTypes> packed;  ///< by PackedType
  std::array<PackBlocks, kWeightTypes>
      pack_blocks;                     ///< by DType; nullptr where panels are packed from floats
  std::array<KvKernels, kKvTypes> kv;  ///< by KvType

  /// dst[n] = src[n] widened to f32, by DType; n is a multiple of its block_elements.
  std::array<void (*)(const std::byte* src, std::int64_t n, float* dst) noexcept, kWeightTypes> widen;
  /// y[n] = x[n] / sqrt(mean(x^2) + eps) * weight[n]; y may be x.
  void (*rms_norm)(const float* x, const float* weight, float eps, std::int64_t n, float* y) noexcept;
  /// Rotates x[2 * half] in place: pairs (i, i + half), or (2i, 2i + 1) where `adjacent`.
  void (*rope)(float* x, const float* cos, const float* sin, std::int64_t half, bool adjacent) noexcept;
  /// out[n] = gate / (1 + exp(-gate)) * up; out may be gate.
  void (*silu_mul)(const float* gate, const float* up, std::int64_t n, float* out) noexcept;
  /// y[n] += x[n].
  void (*add)(const float* x, std::int64_t n, float* y) noexcept;
  /// y[n] *= x[n].
  void (*mul)(const float* x, std::int64_t n, float* y) noexcept;
  /// y[n] = x[n] * factor; y may be x.
  void (*scale)(const float* x, float factor, std::int64_t n, float* y) noexcept;
  /// Merges partial attention (out_b[n], max_b, sum_b) into (out_a, *max_a, *sum_a); see AttendArgs.
  void (*merge)(const float* out_b, float max_b, float sum_b, std::int64_t n, float* out_a, float* max_a,
                float* sum_a) noexcept;
  BestLogit (*best)(const float* values, std::int64_t n) noexcept;
  ProbeKernels probe;
};

/// The tables that this processor can run, the plainest ("scalar") first, the best last.
[[nodiscard]] std::vector<const KernelTable*> available_kernels();
/// Names of all tables in this build, whether or not this processor can run them.
[[nodiscard]] std::vector<std::string_view> built_kernels();
/// The table called `name`. Throws Error{usage} for an unknown name, Error{unsupported} for one that this
/// processor lacks; both list what there is.
[[nodiscard]] const KernelTable& kernels_named(std::string_view name);
/// The table for this processor by a fixed rule on its maker and features, never by timing.
[[nodiscard]] const KernelTable& best_kernels();
/// Names of the processor features that the rule looks at and that are present.
[[nodiscard]] std::vector<std::string_view> cpu_features();

}  // namespace qgen
