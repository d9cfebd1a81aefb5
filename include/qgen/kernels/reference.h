#pragma once

#include <cstdint>

#include "qgen/tensor/tensor_view.h"

// Plain arithmetic in double precision: what kernel tests compare with and what the reference device runs.
// Never optimised.
namespace qgen::reference {

/// Element (r, c) of a weight matrix, widened.
[[nodiscard]] double element(const TensorView& w, std::int64_t r, std::int64_t c) noexcept;
/// y[cols] = row r of a weight matrix, widened.
void row(const TensorView& w, std::int64_t r, double* y);
/// y[rows] = W[rows, cols] x[cols].
void matvec(const TensorView& w, const double* x, double* y);
/// y[n] = x / sqrt(mean(x^2) + eps) * weight.
void rms_norm(const double* x, const TensorView& weight, double eps, std::int64_t n, double* y);
/// Rotates x[2 * half] in place as KernelTable::rope does.
void rope(double* x, const float* cos, const float* sin, std::int64_t half, bool adjacent) noexcept;
/// out[n] = silu(gate) * up.
void silu_mul(const double* gate, const double* up, std::int64_t n, double* out) noexcept;
/// out[head_dim] = softmax(q K^T) V over `positions` rows of k and v, which lie `stride` doubles apart; q is
/// scaled.
void attend(const double* q, const double* k, const double* v, std::int64_t stride, std::int64_t positions,
            std::int64_t head_dim, double* out);

}  // namespace qgen::reference
