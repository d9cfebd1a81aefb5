#pragma once

#include "qgen/models/architecture.h"

namespace qgen {

/// Qwen3, with experts or without, and its neighbours that differ by flags: Qwen2, Llama, Mistral.
const Architecture& qwen3_architecture();

}  // namespace qgen
