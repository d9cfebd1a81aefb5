#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "qgen/base/bytes.h"
#include "qgen/kernels/kernel_table.h"
#include "qgen/plan/plan.h"

namespace qgen {

/// X of products X W^T, of which columns may be divided by factors if those of each W are multiplied by them.
/// No product changes but by what rounding W, and X, to few bits loses: least where columns of X are as large
/// as those of W (Xiao et al. 2022, SmoothQuant; Lin et al. 2023, AWQ).
struct BalancedInput {
  std::size_t stage = 0;           ///< index in the plan of what reads X; the stage before it gives X, or h
  std::int64_t cols = 0;           ///< of X
  std::vector<WeightId> matrices;  ///< all that X is multiplied by
  // What takes the division, so that it costs nothing; one of the two.
  WeightId norm = kNoWeight;  ///< weights of the norm that gives X
  WeightId up = kNoWeight;    ///< rows of up_proj, X being silu(gate) * up
};

/// The inputs of q, k and v, of gate and up, of down and of the head, where each matrix is held in a type
/// that rounds as long as `types` (by WeightId) says so. Inputs of o gain nothing; of experts none is
/// balanced.
std::vector<BalancedInput> balanced_inputs(const Plan& plan, std::span<const PackedType> types);

/// Tokens to measure inputs with, ids from all over the vocabulary. Which hardly matters: how columns differ
/// is the model's doing.
std::vector<TokenId> balancing_tokens(const PlanDims& dims);

/// Factors for one of balanced_inputs(), [cols], of geometric mean 1: square root of (rms of X's column to
/// the power of 0.7) / (rms of the matrices' column). `values`: output of the stage before, see
/// StageObserver.
std::vector<float> balancing_factors(const Plan& plan, const BalancedInput& input, const KernelTable& kernels,
                                     std::span<const float> values);

}  // namespace qgen
