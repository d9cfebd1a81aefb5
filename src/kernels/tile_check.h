#pragma once

namespace qgen::kernels {

/// Whether the tiles of this processor multiply as its manual says; found out once. It must have all that the
/// kernels amx need.
[[nodiscard]] bool tiles_multiply_right() noexcept;

}  // namespace qgen::kernels
