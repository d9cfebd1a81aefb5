#pragma once

#include <span>
#include <vector>

#include "qgen/generate/generate.h"

namespace qgen {

/// The log-probability of `chosen` and the `alternatives` best ids that are `allowed`, in
/// O(V + alternatives * log(alternatives)). `logits` has a row for each id; rows that are not allowed may
/// hold anything, and what is not finite there has no share in the sum.
TokenLogprobs read_logprobs(std::span<const float> logits, const std::vector<bool>& allowed, TokenId chosen,
                            int alternatives);

}  // namespace qgen
