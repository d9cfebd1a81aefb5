#include "qgen/kernels/reference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "qgen/tensor/block_format.h"

namespace qgen::reference {

double element(const TensorView& w, std::int64_t r, std::int64_t c) noexcept {
  std::array<float, kMostBlockElements> block{};
  const std::int64_t together = block_elements(w.dtype);
  const std::int64_t first = c / together * together;
  dequantizer(w.dtype)(w.row(r) + row_bytes(w.dtype, first), together, block.data());
  return static_cast<double>(block[static_cast<std::size_t>(c - first)]);
}

void row(const TensorView& w, std::int64_t r, double* y) {
  std::vector<float> values(static_cast<std::size_t>(w.cols));
  dequantizer(w.dtype)(w.row(r), w.cols, values.data());
  std::ranges::copy(values, y);
}

void matvec(const TensorView& w, const double* x, double* y) {
  std::vector<double> weights(static_cast<std::size_t>(w.cols));
  for (std::int64_t r = 0; r < w.rows; ++r) {
    row(w, r, weights.data());
    y[r] = 0;
    for (std::int64_t c = 0; c < w.cols; ++c) y[r] += weights[static_cast<std::size_t>(c)] * x[c];
  }
}

void rms_norm(const double* x, const TensorView& weight, double eps, std::int64_t n, double* y) {
  std::vector<double> weights(static_cast<std::size_t>(n));
  row(weight, 0, weights.data());
  double squares = 0;
  for (std::int64_t i = 0; i < n; ++i) squares += x[i] * x[i];
  const double factor = 1 / std::sqrt(squares / static_cast<double>(n) + eps);
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] * factor * weights[static_cast<std::size_t>(i)];
}

void rope(double* x, const float* cos, const float* sin, std::int64_t half, bool adjacent) noexcept {
  for (std::int64_t i = 0; i < half; ++i) {
    double& a = adjacent ? x[2 * i] : x[i];
    double& b = adjacent ? x[2 * i + 1] : x[i + half];
    const double c = static_cast<double>(cos[i]), s = static_cast<double>(sin[i]);
    const double rotated = a * c - b * s;
    b = b * c + a * s;
    a = rotated;
  }
}

void silu_mul(const double* gate, const double* up, std::int64_t n, double* out) noexcept {
  for (std::int64_t i = 0; i < n; ++i) out[i] = gate[i] / (1 + std::exp(-gate[i])) * up[i];
}

void attend(const double* q, const double* k, const double* v, std::int64_t stride, std::int64_t positions,
            std::int64_t head_dim, double* out) {
  std::vector<double> weights(static_cast<std::size_t>(positions));
  double highest = -std::numeric_limits<double>::infinity(), sum = 0;
  for (std::int64_t p = 0; p < positions; ++p) {
    double& score = weights[static_cast<std::size_t>(p)];
    for (std::int64_t d = 0; d < head_dim; ++d) score += q[d] * k[p * stride + d];
    highest = std::max(highest, score);
  }
  for (double& weight : weights) sum += weight = std::exp(weight - highest);
  for (std::int64_t d = 0; d < head_dim; ++d) {
    out[d] = 0;
    for (std::int64_t p = 0; p < positions; ++p) {
      out[d] += weights[static_cast<std::size_t>(p)] / sum * v[p * stride + d];
    }
  }
}

}  // namespace qgen::reference
