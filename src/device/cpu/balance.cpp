#include "device/cpu/balance.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <variant>

namespace qgen {
namespace {

constexpr std::int64_t kTokens = 16;
constexpr double kInputPower = 0.7;  // inputs differ from text to text, so what was measured counts less
constexpr double kMostLog = 6;       // of factors, so that scales stay within f16

WeightId norm_of(const Stage& stage) {
  return std::visit(
      [](const auto& kind) {
        if constexpr (requires { kind.norm; }) return kind.norm;
        return kNoWeight;
      },
      stage);
}

/// All inputs that could be balanced, had their matrices the right type.
std::vector<BalancedInput> candidates(const Plan& plan) {
  std::vector<BalancedInput> inputs;
  for (std::size_t i = 1; i < plan.stages.size(); ++i) {
    const Stage& stage = plan.stages[i];
    const auto* gate_up = std::get_if<NormGateUpStage>(&plan.stages[i - 1]);
    const bool normed = norm_of(stage) != kNoWeight && !std::holds_alternative<MoeStage>(stage);
    if (!normed && gate_up == nullptr) continue;
    BalancedInput input{.stage = i, .cols = 0, .matrices = matrices_of(stage)};
    input.cols = plan.weight(input.matrices.front()).cols;
    input.norm = normed ? norm_of(stage) : kNoWeight;
    input.up = normed ? kNoWeight : gate_up->up_proj;
    inputs.push_back(std::move(input));
  }
  return inputs;
}

/// By WeightId: how many stages use it as a matrix or as the norm of their input.
std::vector<int> count_uses(const Plan& plan) {
  std::vector<int> uses(plan.weights.size());
  for (const Stage& stage : plan.stages) {
    for (const WeightId id : matrices_of(stage)) ++uses[static_cast<std::size_t>(id)];
    if (norm_of(stage) != kNoWeight) ++uses[static_cast<std::size_t>(norm_of(stage))];
  }
  return uses;
}

/// Sums of squares by column.
class ColumnSquares {
 public:
  explicit ColumnSquares(std::int64_t cols) : sums_(static_cast<std::size_t>(cols)) {}

  /// The row counts `weight` times.
  void add(std::span<const float> row, double weight) {
    for (std::size_t j = 0; j < sums_.size(); ++j) {
      sums_[j] += weight * (static_cast<double>(row[j]) * static_cast<double>(row[j]));
    }
  }

  /// All rows, estimated from some: for this purpose they are alike.
  void add_matrix(const TensorView& view, const KernelTable& kernels) {
    constexpr std::int64_t kPieces = 8, kRows = 8;
    const std::int64_t step = std::max(kRows, view.rows / kPieces);
    std::vector<std::int64_t> rows;
    for (std::int64_t piece = 0; piece < view.rows; piece += step) {
      for (std::int64_t row = piece; row < std::min(piece + kRows, view.rows); ++row) rows.push_back(row);
    }
    std::vector<float> values(sums_.size());
    for (const std::int64_t row : rows) {
      kernels.widen[static_cast<std::size_t>(view.dtype)](view.row(row), view.cols, values.data());
      add(values, static_cast<double>(view.rows) / static_cast<double>(rows.size()));
    }
  }

  [[nodiscard]] const std::vector<double>& sums() const noexcept { return sums_; }

 private:
  std::vector<double> sums_;
};

double mean_square(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += static_cast<double>(value) * static_cast<double>(value);
  return sum / static_cast<double>(values.size());
}

/// Of X's columns.
std::vector<double> input_squares(const Plan& plan, const BalancedInput& input, const KernelTable& kernels,
                                  std::span<const float> values) {
  const auto cols = static_cast<std::size_t>(input.cols);
  ColumnSquares squares(input.cols);
  for (std::size_t at = 0; at < values.size(); at += cols) {
    const std::span<const float> row = values.subspan(at, cols);
    squares.add(row, input.norm == kNoWeight ? 1 : 1 / (mean_square(row) + plan.norm_eps));
  }
  std::vector<double> sums = squares.sums();
  if (input.norm == kNoWeight) return sums;
  ColumnSquares norm(input.cols);
  norm.add_matrix(plan.weight(input.norm), kernels);
  for (std::size_t j = 0; j < cols; ++j) sums[j] *= norm.sums()[j];
  return sums;
}

}  // namespace

std::vector<BalancedInput> balanced_inputs(const Plan& plan, std::span<const PackedType> types) {
  const std::vector<int> uses = count_uses(plan);
  const auto once = [&](WeightId id) { return id == kNoWeight || uses[static_cast<std::size_t>(id)] == 1; };
  const auto rounded = [&](WeightId id) {
    const PackedType type = types[static_cast<std::size_t>(id)];
    return (type == PackedType::q8_rotated || type == PackedType::q4) &&
           packed_type_of(plan.weight(id).dtype) != type;
  };
  std::vector<BalancedInput> inputs = candidates(plan);
  std::erase_if(inputs, [&](const BalancedInput& input) {
    const bool up = input.up == kNoWeight || rounded(input.up);
    return !up || !once(input.norm) || !once(input.up) || !std::ranges::all_of(input.matrices, rounded) ||
           !std::ranges::all_of(input.matrices, once);
  });
  return inputs;
}

std::vector<TokenId> balancing_tokens(const PlanDims& dims) {
  constexpr double kGoldenRatio = 0.61803398874989484820;  // multiples of it spread evenly
  std::vector<TokenId> tokens;
  for (std::int64_t i = 1; i <= std::min(kTokens, dims.context); ++i) {
    const double at = std::fmod(static_cast<double>(i) * kGoldenRatio, 1.0);
    tokens.push_back(static_cast<TokenId>(at * static_cast<double>(dims.vocab)));
  }
  return tokens;
}

std::vector<float> balancing_factors(const Plan& plan, const BalancedInput& input, const KernelTable& kernels,
                                     std::span<const float> values) {
  const std::vector<double> x = input_squares(plan, input, kernels, values);
  ColumnSquares w(input.cols);
  for (const WeightId id : input.matrices) w.add_matrix(plan.weight(id), kernels);
  // Of squares, hence a quarter of the logarithms; columns without numbers to go by keep a factor of 1.
  std::vector<double> logs(x.size());
  double sum = 0, count = 0;
  for (std::size_t j = 0; j < x.size(); ++j) {
    logs[j] = (kInputPower * std::log2(x[j]) - std::log2(w.sums()[j])) / 4;
    if (!std::isfinite(logs[j])) continue;
    sum += logs[j];
    ++count;
  }
  std::vector<float> factors(x.size(), 1.0f);
  for (std::size_t j = 0; j < x.size(); ++j) {
    if (!std::isfinite(logs[j])) continue;
    factors[j] = static_cast<float>(std::exp2(std::clamp(logs[j] - sum / count, -kMostLog, kMostLog)));
  }
  return factors;
}

}  // namespace qgen
