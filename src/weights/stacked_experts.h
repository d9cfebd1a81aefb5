#pragma once

#include "qgen/weights/checkpoint.h"

namespace qgen {

/// Experts more than which no stack may have: each becomes tensors of its own, which even empty ones take
/// memory for. Published models have some hundreds.
inline constexpr std::int64_t kMaxStackedExperts = 65536;

/// Replaces stacks of experts, as transformers 5 holds them in memory and may save them
/// ("P.experts.gate_up_proj" [E, 2 M, D] and "P.experts.down_proj" [E, D, M]), by views of one tensor each
/// ("P.experts.3.gate_proj.weight"). Throws Error{file} naming tensor, expected and found.
void split_stacked_experts(Checkpoint::Tensors& tensors);

}  // namespace qgen
