#pragma once

namespace qgen::kernels {

/// Whether the tiles of this processor multiply as its manual says; found out once. It must have AMX with
/// bf16 and all that the kernels avx512 need.
[[nodiscard]] bool tiles_multiply_right() noexcept;

}  // namespace qgen::kernels
