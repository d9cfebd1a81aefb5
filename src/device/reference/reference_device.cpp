#include "device/reference/reference_device.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "qgen/base/error.h"
#include "qgen/base/utf8.h"
#include "qgen/kernels/reference.h"

namespace qgen {
namespace {

using Row = std::vector<double>;

/// Keys and values of each layer, position after position, all heads side by side.
class ReferenceTimeline final : public Timeline {
 public:
  explicit ReferenceTimeline(const PlanDims& dims)
      : row_(dims.kv_heads * dims.head_dim),
        keys_(static_cast<std::size_t>(dims.layers)),
        values_(static_cast<std::size_t>(dims.layers)) {}

  [[nodiscard]] std::int64_t position() const noexcept override { return position_; }
  void truncate(std::int64_t position) override {
    position_ = position;
    for (auto* store : {&keys_, &values_}) {
      for (Row& layer : *store) layer.resize(static_cast<std::size_t>(position * row_));
    }
  }
  [[nodiscard]] std::unique_ptr<Timeline> fork() const override {
    return std::make_unique<ReferenceTimeline>(*this);
  }
  [[nodiscard]] std::size_t bytes() const noexcept override {
    return 2 * keys_.size() * static_cast<std::size_t>(position_ * row_) * sizeof(double);
  }

  void advance() noexcept { ++position_; }
  Row& keys(std::int64_t layer) noexcept { return keys_[static_cast<std::size_t>(layer)]; }
  Row& values(std::int64_t layer) noexcept { return values_[static_cast<std::size_t>(layer)]; }

 private:
  std::int64_t row_;
  std::int64_t position_ = 0;
  std::vector<Row> keys_, values_;  // [L][positions * K*d]
};

/// One token's way through the stages.
class TokenWalk {
 public:
  TokenWalk(const Plan& plan, ReferenceTimeline& timeline, TokenId token)
      : plan_(plan), dims_(plan.dims), timeline_(timeline), token_(token) {
    const std::int64_t half = dims_.head_dim / 2;
    for (std::int64_t i = 0; i < half; ++i) {
      const float angle =
          static_cast<float>(timeline.position()) * plan.rope.inv_freq[static_cast<std::size_t>(i)];
      cos_.push_back(static_cast<float>(std::cos(double{angle})) * plan.rope.scale);
      sin_.push_back(static_cast<float>(std::sin(double{angle})) * plan.rope.scale);
    }
  }

  /// The stage's output, in StageObserver's terms; `want_logits` false skips the output matrix.
  const Row& run(const Stage& stage, bool want_logits) {
    if (std::holds_alternative<NormHeadStage>(stage) && !want_logits) return empty_;
    return *std::visit([this](const auto& kind) { return step(kind); }, stage);
  }

 private:
  const Row* step(const EmbedStage& stage) {
    const TensorView& table = plan_.weight(stage.table);
    h_.resize(static_cast<std::size_t>(dims_.width));
    reference::row(table, token_, h_.data());
    return &h_;
  }

  const Row* step(const NormQkvStage& stage) {
    const Row x = norm(h_, stage.norm);
    q_ = product(stage.q_proj, stage.q_bias, x);
    Row k = product(stage.k_proj, stage.k_bias, x);
    const Row v = product(stage.v_proj, stage.v_bias, x);
    turn_heads(q_, stage.q_norm);
    turn_heads(k, stage.k_norm);
    append(timeline_.keys(stage.layer), k);
    append(timeline_.values(stage.layer), v);
    return &q_;
  }

  const Row* step(const AttendStage& stage) {
    const std::int64_t d = dims_.head_dim;
    attention_.resize(q_.size());
    for (std::int64_t head = 0; head < dims_.heads; ++head) {
      const std::int64_t kv_head = head / (dims_.heads / dims_.kv_heads);
      Row q(q_.begin() + head * d, q_.begin() + (head + 1) * d);
      for (double& value : q) value /= std::sqrt(static_cast<double>(d));
      reference::attend(q.data(), timeline_.keys(stage.layer).data() + kv_head * d,
                        timeline_.values(stage.layer).data() + kv_head * d, dims_.kv_heads * d,
                        timeline_.position() + 1, d, attention_.data() + head * d);
    }
    return &attention_;
  }

  const Row* step(const ProjectAddStage& stage) {
    const Row delta = product(stage.weight, stage.bias,
                              stage.input == ProjectInput::attention ? attention_ : feed_forward_);
    for (std::size_t i = 0; i < h_.size(); ++i) h_[i] += delta[i];
    return &h_;
  }

  const Row* step(const NormGateUpStage& stage) {
    const Row x = norm(h_, stage.norm);
    const Row gate = product(stage.gate_proj, kNoWeight, x);
    const Row up = product(stage.up_proj, kNoWeight, x);
    feed_forward_.resize(gate.size());
    reference::silu_mul(gate.data(), up.data(), dims_.feed_forward, feed_forward_.data());
    return &feed_forward_;
  }

  const Row* step(const MoeStage& stage) {
    const Row x = norm(h_, stage.norm);
    Row sum(h_.size());
    for (const auto& [expert, probability] : choose_experts(stage, x)) {
      const Row gate = product(stage.gate_proj[expert], kNoWeight, x);
      const Row up = product(stage.up_proj[expert], kNoWeight, x);
      Row u(gate.size());
      reference::silu_mul(gate.data(), up.data(), dims_.expert_width, u.data());
      const Row y = product(stage.down_proj[expert], kNoWeight, u);
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += probability * y[i];
    }
    for (std::size_t i = 0; i < h_.size(); ++i) h_[i] += sum[i];
    return &h_;
  }

  const Row* step(const NormHeadStage& stage) {
    logits_ = product(stage.head, kNoWeight, norm(h_, stage.norm));
    return &logits_;
  }

  /// The experts that x goes to, each with its factor.
  [[nodiscard]] std::vector<std::pair<std::size_t, double>> choose_experts(const MoeStage& stage,
                                                                           const Row& x) const {
    Row p = product(stage.router, kNoWeight, x);
    const double most = *std::ranges::max_element(p);
    double all = 0;
    for (double& value : p) {
      value = std::exp(value - most);
      all += value;
    }
    // A value that is not finite makes every quotient NaN, which is in order for a sort as well.
    std::vector<std::pair<std::size_t, double>> chosen;
    for (std::size_t expert = 0; expert < p.size(); ++expert) chosen.emplace_back(expert, p[expert] / all);
    std::ranges::stable_sort(chosen, std::ranges::greater{}, &std::pair<std::size_t, double>::second);
    chosen.resize(static_cast<std::size_t>(dims_.experts_per_token));
    double kept = 0;
    for (const auto& [expert, probability] : chosen) kept += probability;
    for (auto& [expert, probability] : chosen) probability /= stage.norm_topk_prob ? kept : 1;
    return chosen;
  }

  static void append(Row& store, const Row& row) { store.insert(store.end(), row.begin(), row.end()); }

  [[nodiscard]] Row norm(const Row& x, WeightId weight) const {
    Row y(x.size());
    reference::rms_norm(x.data(), plan_.weight(weight), plan_.norm_eps, std::ssize(x), y.data());
    return y;
  }

  [[nodiscard]] Row product(WeightId weight, WeightId bias, const Row& x) const {
    const TensorView& w = plan_.weight(weight);
    Row y(static_cast<std::size_t>(w.rows));
    reference::matvec(w, x.data(), y.data());
    if (bias == kNoWeight) return y;
    Row shift(y.size());
    reference::row(plan_.weight(bias), 0, shift.data());
    for (std::size_t i = 0; i < y.size(); ++i) y[i] += shift[i];
    return y;
  }

  void turn_heads(Row& heads, WeightId norm_weight) const {
    const std::int64_t d = dims_.head_dim;
    for (double* x = heads.data(); x != heads.data() + heads.size(); x += d) {
      if (norm_weight != kNoWeight) {
        reference::rms_norm(x, plan_.weight(norm_weight), plan_.norm_eps, d, x);
      }
      reference::rope(x, cos_.data(), sin_.data(), d / 2, plan_.rope.pairs == RopePairs::adjacent);
    }
  }

  const Plan& plan_;
  const PlanDims& dims_;
  ReferenceTimeline& timeline_;
  TokenId token_;
  std::vector<float> cos_, sin_;
  Row h_, q_, attention_, feed_forward_, logits_, empty_;
};

class ReferenceExecutor final : public Executor {
 public:
  explicit ReferenceExecutor(Plan plan) : plan_(std::move(plan)) {}

  std::unique_ptr<Timeline> new_timeline() override {
    return std::make_unique<ReferenceTimeline>(plan_.dims);
  }
  std::span<const SliceResult> run(std::span<const Slice> slices) override;
  void set_allowed(std::vector<bool> allowed) override {
    allowed.resize(static_cast<std::size_t>(plan_.dims.vocab), false);
    allowed_ = std::move(allowed);
  }
  void set_observer(StageObserver observer) override { observer_ = std::move(observer); }
  [[nodiscard]] std::string description() const override { return "reference: double precision, 1 thread"; }
  [[nodiscard]] int threads() const noexcept override { return 1; }
  [[nodiscard]] std::string_view weight_type() const noexcept override {
    const auto& qkv = std::get<NormQkvStage>(plan_.stages[1]);
    switch (plan_.weight(qkv.q_proj).dtype) {
      case DType::f16:
        return "f16";
      case DType::bf16:
        return "bf16";
      default:
        return "f32";
    }
  }
  [[nodiscard]] std::int64_t weight_bytes_per_token() const noexcept override {
    std::int64_t bytes = 0;
    for (const PlanWeight& weight : plan_.weights) bytes += weight.view.bytes();
    const TensorView& table = plan_.weight(std::get<EmbedStage>(plan_.stages.front()).table);
    const TensorView& head = plan_.weight(std::get<NormHeadStage>(plan_.stages.back()).head);
    for (const Stage& stage : plan_.stages) {
      const auto* moe = std::get_if<MoeStage>(&stage);
      if (moe != nullptr) bytes -= unchosen_bytes(*moe);
    }
    // Of an embedding that is not the head as well, only one row is read.
    return table.data == head.data ? bytes : bytes - table.bytes() + table.stride;
  }
  [[nodiscard]] std::int64_t cache_bytes_per_position() const noexcept override {
    return 2 * plan_.dims.layers * plan_.dims.kv_heads * plan_.dims.head_dim * std::int64_t{sizeof(double)};
  }

 private:
  [[nodiscard]] SliceResult best_of(std::span<const float> logits) const;

  /// Bytes of the experts that a token does not go to, where all are chosen equally often.
  [[nodiscard]] std::int64_t unchosen_bytes(const MoeStage& stage) const {
    std::int64_t all = 0;
    for (const auto* matrices : {&stage.gate_proj, &stage.up_proj, &stage.down_proj}) {
      for (const WeightId id : *matrices) all += plan_.weight(id).bytes();
    }
    return all - all * plan_.dims.experts_per_token / plan_.dims.experts;
  }

  Plan plan_;
  std::vector<bool> allowed_;
  StageObserver observer_;
  std::vector<SliceResult> results_;
  std::vector<std::vector<float>> logits_;  // one buffer a slice
};

std::span<const SliceResult> ReferenceExecutor::run(std::span<const Slice> slices) {
  results_.assign(slices.size(), SliceResult{});
  logits_.assign(slices.size(), {});
  std::vector<std::vector<float>> outputs(plan_.stages.size());
  for (std::size_t s = 0; s < slices.size(); ++s) {
    const Slice& slice = slices[s];
    auto& timeline = static_cast<ReferenceTimeline&>(*slice.timeline);
    for (std::size_t t = 0; t < slice.tokens.size(); ++t) {
      const bool wanted =
          slice.want == Want::all || (slice.want != Want::none && t + 1 == slice.tokens.size());
      TokenWalk walk(plan_, timeline, slice.tokens[t]);
      for (std::size_t i = 0; i < plan_.stages.size(); ++i) {
        const Row& row = walk.run(plan_.stages[i], wanted);
        if (observer_) outputs[i].insert(outputs[i].end(), row.begin(), row.end());
        if (i + 1 == plan_.stages.size()) logits_[s].insert(logits_[s].end(), row.begin(), row.end());
      }
      timeline.advance();
    }
    if (slice.want == Want::best && !slice.tokens.empty()) {
      results_[s] = best_of(logits_[s]);
    } else {
      results_[s].logits = logits_[s];
    }
  }
  for (std::size_t i = 0; observer_ && i < outputs.size(); ++i) observer_(i, outputs[i]);
  return results_;
}

SliceResult ReferenceExecutor::best_of(std::span<const float> logits) const {
  SliceResult result;
  for (std::size_t id = 0; id < logits.size(); ++id) {
    if (!allowed_.empty() && !allowed_[id]) continue;
    const float value = logits[id];
    if (std::isnan(value) || value == HUGE_VALF) {
      if (result.not_finite < 0) result.not_finite = static_cast<TokenId>(id);
    } else if (value > -HUGE_VALF &&
               (result.best < 0 || value > logits[static_cast<std::size_t>(result.best)])) {
      result.best = static_cast<TokenId>(id);
    }
  }
  return result;
}

}  // namespace

std::optional<std::string> ReferenceDevice::supports(const Plan& /*plan*/) const {
  return std::nullopt;
}

std::unique_ptr<Executor> ReferenceDevice::compile(const Plan& plan, const DeviceOptions& options) const {
  check_plan(plan);
  if (options.weights != "auto") {
    throw Error(ErrorKind::device, "the reference device holds weights as the file has them, not as " +
                                       escape_control(options.weights));
  }
  if (options.kv != "auto") {
    throw Error(ErrorKind::device,
                "the reference device caches doubles, not " + escape_control(options.kv) + " numbers");
  }
  // "scalar" is what modes with plain kernels ask of any device.
  if (!options.kernels.empty() && options.kernels != "scalar") {
    throw Error(ErrorKind::device,
                "the reference device has no kernels '" + escape_control(options.kernels) + "'");
  }
  return std::make_unique<ReferenceExecutor>(plan);
}

}  // namespace qgen
