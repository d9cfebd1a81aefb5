#pragma once

#include "qgen/engine/engine.h"

namespace qgen::cli {

/// The demonstration model that is part of the program (src/cli/builtin/tales).
[[nodiscard]] const EmbeddedModel& builtin_model() noexcept;

}  // namespace qgen::cli
