#pragma once

#include <span>

#include "generate/source.h"
#include "qgen/generate/generate.h"

namespace qgen {

/// generate() over any source.
GenerateResult run_loop(Source& source, Sampler& sampler, std::span<const TokenId> prompt,
                        const GenerateOptions& options, const GenerateHooks& hooks);

}  // namespace qgen
