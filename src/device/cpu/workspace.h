#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "qgen/base/aligned_buffer.h"

namespace qgen {

/// A buffer that only grows; its contents do not survive growing.
class GrowingBuffer {
 public:
  /// At least `count` elements. Throws Error{memory}.
  template <typename T>
  std::span<T> get(std::int64_t count) {
    const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(T);
    if (bytes > buffer_.size()) {
      buffer_ = AlignedBuffer();  // give the old memory back first
      buffer_ = AlignedBuffer(bytes);
    }
    return buffer_.as<T>().first(static_cast<std::size_t>(count));
  }

 private:
  AlignedBuffer buffer_;
};

/// One of the experts that a token goes to.
struct ExpertChoice {
  std::int64_t expert = 0;
  float factor = 0;
};

/// One of the tokens that an expert gets.
struct ExpertToken {
  std::int64_t token = 0;
  float factor = 0;
};

/// What each thread keeps to itself. Sized before a step, since nothing may fail once the threads walk.
struct ThreadScratch {
  std::span<float> normed;        ///< [kFewTokens, D]
  std::span<std::byte> prepared;  ///< input of `few` kernels
  std::span<std::byte> matmul;    ///< scratch of matrix kernels
  std::span<float> attend;        ///< [attend_scratch_floats(d)]
  // Only where there are experts:
  std::span<std::int64_t> expert_ends;   ///< [E]: where the tokens of each end in expert_tokens
  std::span<ExpertToken> expert_tokens;  ///< [T * k], by expert, then by token
  std::span<float> gathered;             ///< [most token_block, D]: rows about to be prepared
  std::span<float> unpacked;             ///< of the rows of one panel, where weights are packed on use
};

/// Activations of one step, all tokens, row-major.
struct Activations {
  std::span<float> h;              ///< [T, D]
  std::span<float> normed;         ///< [T, D], only where more than kFewTokens are run
  std::span<float> q;              ///< [T, H*d]
  std::span<float> kv;             ///< [T, 2*K*d]: keys of all heads, then values
  std::span<float> attention;      ///< [T, H*d]
  std::span<float> parts;          ///< an AttendPart for each chunk of each unit, where chunks are shared out
  std::span<float> gate;           ///< [T, F] or [T * k, M], then silu(gate) * up
  std::span<float> up;             ///< [T, F] or [T * k, M]
  std::span<float> delta;          ///< [T, D]: what ProjectAdd or one expert adds
  std::span<float> router;         ///< [T, E]
  std::span<ExpertChoice> chosen;  ///< [T, k], by expert
  std::span<float> cos, sin;       ///< [T, d/2]
  std::span<float> logits;         ///< [wanted rows, V]
  std::span<std::byte> prepared;   ///< shared input of products of more rows
};

}  // namespace qgen
