#pragma once

#include "qgen/plan/plan.h"
#include "qgen/weights/model_config.h"

namespace qgen {

/// Frequencies, scale and pairing for heads of `head_dim` elements. Types: default, linear, yarn, llama3,
/// each with its frequencies divided further where the settings bring divisors; throws Error{unsupported} for
/// others and Error{file} for settings from which nothing can be computed.
PlanRope make_rope(const ModelConfig& config, std::int64_t head_dim);

/// How many positions the settings make of config.max_position_embeddings.
std::int64_t rope_context(const ModelConfig& config, std::int64_t max_position_embeddings);

}  // namespace qgen
