#include "device/cpu/executor.h"

#include <algorithm>
#include <array>

#include "qgen/base/stopwatch.h"

namespace qgen {
namespace {

/// Norms and biases as f32 vectors.
std::vector<std::vector<float>> widen_vectors(const Plan& plan, const KernelTable& kernels,
                                              const PackedWeights& packed) {
  std::vector<std::vector<float>> vectors(plan.weights.size());
  for (std::size_t i = 0; i < vectors.size(); ++i) {
    const TensorView& view = plan.weights[i].view;
    // A matrix may have a single row, too.
    if (view.rows != 1 || packed[static_cast<WeightId>(i)].kernels != nullptr) continue;
    vectors[i].resize(static_cast<std::size_t>(view.cols));
    kernels.widen[static_cast<std::size_t>(view.dtype)](view.data, view.cols, vectors[i].data());
  }
  return vectors;
}

}  // namespace

CpuExecutor::CpuExecutor(Plan plan, const KernelTable& kernels, const Types& types, int threads,
                         PackSource source)
    : plan_(std::move(plan)),
      team_(threads),
      sharing_(threads),
      model_{&plan_, &kernels, PackedWeights(plan_, kernels, types.weights, std::move(source)), types.kv, {}},
      pages_(std::make_shared<KvPages>(KvLayout(plan_.dims, types.kv))),
      thread_buffers_(static_cast<std::size_t>(threads)),
      scratch_(static_cast<std::size_t>(threads)) {
  model_.vectors = widen_vectors(plan_, kernels, model_.weights);
  list_products();
  if (model_.weights.found()) {
    for (const BalancedInput& input : model_.weights.balanced()) divide_norm(input.norm);
  } else {
    pack_weights();
  }
}

/// Where inputs are balanced, each matrix is packed when a run of some tokens comes to it: what its columns
/// are to be multiplied by is known then, and its numbers are read once for both.
void CpuExecutor::pack_weights() {
  const std::vector<BalancedInput>& inputs = model_.weights.balanced();
  if (!inputs.empty()) {
    observer_ = [&](std::size_t stage, std::span<const float> values) {
      const auto next = std::ranges::find(inputs, stage + 1, &BalancedInput::stage);
      if (next != inputs.end()) balance(static_cast<std::size_t>(next - inputs.begin()), values);
    };
    packing_ = true;
    const std::vector<TokenId> tokens = balancing_tokens(plan_.dims);
    const auto timeline = new_timeline();
    const Slice slice{timeline.get(), tokens, Want::none};
    run({&slice, 1});
    packing_ = false;
    observer_ = {};
  }
  model_.weights.pack(team_);
}

/// `values`: what the stage before that input's put out. Called between the two stages, by one member.
void CpuExecutor::balance(std::size_t index, std::span<const float> values) {
  const BalancedInput& input = model_.weights.balanced()[index];
  const std::vector<float> factors = balancing_factors(plan_, input, *model_.kernels, values);
  model_.weights.set_factors(index, factors);
  divide_norm(input.norm);
  if (input.up == kNoWeight) return;
  // Its rows were packed without knowing this.
  for (std::size_t i = 0; i < values.size(); ++i) step_.act.gate[i] /= factors[i % factors.size()];
}

void CpuExecutor::divide_norm(WeightId norm) {
  if (norm == kNoWeight) return;
  const float* divisors = model_.weights.divisors(norm);
  std::vector<float>& vector = model_.vectors[static_cast<std::size_t>(norm)];
  for (std::size_t i = 0; i < vector.size(); ++i) vector[i] /= divisors[i];
}

void CpuExecutor::list_products() {
  const auto add = [this](WeightId id, Product::Input input) {
    const Product product{model_.weights[id].kernels, model_.weights[id].cols, input};
    if (std::ranges::find(products_, product) == products_.end()) products_.push_back(product);
  };
  for (const WeightId id : model_.weights.order()) add(id, Product::Input::rows);
  for (const Stage& stage : plan_.stages) {
    const auto* moe = std::get_if<MoeStage>(&stage);
    if (moe == nullptr) continue;
    add(moe->router, Product::Input::router);
    for (const auto* matrices : {&moe->gate_proj, &moe->up_proj, &moe->down_proj}) {
      for (const WeightId id : *matrices) add(id, Product::Input::experts);
    }
  }
}

std::unique_ptr<Timeline> CpuExecutor::new_timeline() {
  return std::make_unique<CpuTimeline>(pages_);
}

void CpuExecutor::set_allowed(std::vector<bool> allowed) {
  allowed.resize(static_cast<std::size_t>(plan_.dims.vocab), false);
  banned_.clear();
  for (std::int64_t id = 0; id < plan_.dims.vocab; ++id) {
    if (allowed[static_cast<std::size_t>(id)]) continue;
    if (banned_.empty() || banned_.back().end != id) banned_.push_back({id, id});
    banned_.back().end = id + 1;
  }
}

std::string CpuExecutor::description() const {
  constexpr std::array<const char*, kKvTypes> kv_names{"f32", "f16", "bf16", "q8"};
  return "cpu: " + std::string(model_.kernels->name) + " kernels, " + std::to_string(team_.size()) +
         (team_.size() == 1 ? " thread, " : " threads, ") + std::string(weight_type()) + " weights, " +
         kv_names[static_cast<std::size_t>(model_.kv_type)] + " cache";
}

std::string_view CpuExecutor::weight_type() const noexcept {
  return packed_type_name(model_.weights.type());
}

std::optional<double> CpuExecutor::read_weights() {
  constexpr std::int64_t kPage = 4096;
  const Bytes memory = model_.weights.memory();
  const std::int64_t pages = std::ssize(memory) / kPage;
  if (pages == 0) return std::nullopt;
  const ProbeKernels& probe = best_kernels().probe;  // the widest loads, whatever table computes
  std::atomic<std::uint64_t> sink{0};
  const Stopwatch watch;
  team_.run([&](int member) {
    const Range mine = share(pages, 1, member, team_.size());
    sink += probe.read(memory.data() + mine.begin * kPage,
                       static_cast<std::size_t>((mine.end - mine.begin) * kPage));
  });
  return static_cast<double>(pages * kPage) / watch.seconds();
}

std::int64_t CpuExecutor::weight_bytes_per_token() const noexcept {
  // Besides the panels only vectors and one row of the embedding.
  std::int64_t bytes = model_.weights.bytes();
  for (const std::vector<float>& vector : model_.vectors)
    bytes += std::ssize(vector) * std::int64_t{sizeof(float)};
  for (const Stage& stage : plan_.stages) {
    if (const auto* moe = std::get_if<MoeStage>(&stage)) bytes -= unchosen_bytes(*moe);
  }
  const TensorView& table = plan_.weight(std::get<EmbedStage>(plan_.stages.front()).table);
  return bytes + table.stride;
}

/// Bytes of the experts that a token does not go to, where all are chosen equally often.
std::int64_t CpuExecutor::unchosen_bytes(const MoeStage& stage) const noexcept {
  std::int64_t all = 0;
  for (const auto* matrices : {&stage.gate_proj, &stage.up_proj, &stage.down_proj}) {
    for (const WeightId id : *matrices) all += model_.weights[id].bytes();
  }
  return all - all * plan_.dims.experts_per_token / plan_.dims.experts;
}

std::int64_t CpuExecutor::cache_bytes_per_position() const noexcept {
  return pages_->layout().bytes_per_position();
}

// --- one step
// ------------------------------------------------------------------------------------------------------

std::span<const SliceResult> CpuExecutor::run(std::span<const Slice> slices) {
  lay_out(slices);
  results_.assign(slices.size(), SliceResult{});
  if (tokens_.empty()) return results_;
  allocate();
  for (const Slice& slice : slices) {
    static_cast<CpuTimeline*>(slice.timeline)->reserve(std::ssize(slice.tokens));
  }
  team_.run([this](int member) { walk_stages(member); });
  for (const Slice& slice : slices) {
    static_cast<CpuTimeline*>(slice.timeline)->advance(std::ssize(slice.tokens));
  }
  collect(slices);
  return results_;
}

/// Lists the step's tokens, the units in which they attend and the rows whose logits are wanted.
void CpuExecutor::lay_out(std::span<const Slice> slices) {
  tokens_.clear();
  units_.clear();
  logit_rows_.clear();
  only_best_.clear();
  for (const Slice& slice : slices) {
    auto* timeline = static_cast<CpuTimeline*>(slice.timeline);
    const auto first = std::ssize(tokens_);
    const auto count = std::ssize(slice.tokens);
    if (count == 0) continue;
    for (std::int64_t i = 0; i < count; ++i) {
      tokens_.push_back({timeline, timeline->position() + i, slice.tokens[static_cast<std::size_t>(i)]});
    }
    add_units(first, count);
    if (slice.want == Want::none) continue;
    for (std::int64_t i = slice.want == Want::all ? 0 : count - 1; i < count; ++i) {
      logit_rows_.push_back(first + i);
      only_best_.push_back(slice.want == Want::best ? 1 : 0);
    }
  }
}

/// Units are as large as kernels can share keys and values for.
void CpuExecutor::add_units(std::int64_t first, std::int64_t count) {
  const std::int64_t group = plan_.dims.heads / plan_.dims.kv_heads;
  const std::int64_t heads = std::min(group, kAttendQueries);
  const std::int64_t most = kAttendQueries / heads;
  for (std::int64_t i = 0; i < count; i += most) {
    AttendUnit unit;
    unit.first = first + i;
    unit.tokens = std::min(most, count - i);
    unit.chunks = (tokens_[static_cast<std::size_t>(unit.first + unit.tokens - 1)].position) / kKvChunk + 1;
    for (unit.kv_head = 0; unit.kv_head < plan_.dims.kv_heads; ++unit.kv_head) {
      for (std::int64_t head = 0; head < group; head += heads) {
        unit.heads = {unit.kv_head * group + head, unit.kv_head * group + std::min(head + heads, group)};
        unit.first_part = units_.empty() ? 0 : units_.back().first_part + units_.back().chunks;
        units_.push_back(unit);
      }
    }
  }
}

/// Where units are few and do not go around evenly, members share their chunks instead.
void CpuExecutor::share_chunks() {
  constexpr std::int64_t kFewUnits = 4;
  const auto units = std::ssize(units_);
  const std::int64_t parts = units_.back().first_part + units_.back().chunks;
  const bool shared =
      team_.size() > 1 && units < kFewUnits * team_.size() && units % team_.size() != 0 && parts > units;
  step_.act.parts = buffers_.parts.get<float>(
      shared ? parts * attend_part_floats(most_queries(units_), plan_.dims.head_dim) : 0);
  chunks_done_ = std::vector<std::atomic<std::int64_t>>(shared ? units_.size() : 0);
  step_.chunks_done = chunks_done_;
}

void CpuExecutor::allocate() {
  const PlanDims& dims = plan_.dims;
  const std::int64_t count = std::ssize(tokens_);
  const auto rows = std::ssize(logit_rows_);
  best_.assign(static_cast<std::size_t>(team_.size() * rows), BestLogit{});
  step_ = Step{
      tokens_, units_, {}, logit_rows_, only_best_, banned_, best_, {}, packing_ ? &model_.weights : nullptr};
  Activations& act = step_.act;
  act.h = buffers_.h.get<float>(count * dims.width);
  act.q = buffers_.q.get<float>(count * dims.heads * dims.head_dim);
  act.kv = buffers_.kv.get<float>(count * 2 * dims.kv_heads * dims.head_dim);
  act.attention = buffers_.attention.get<float>(count * dims.heads * dims.head_dim);
  const std::int64_t choices = count * dims.experts_per_token;
  const std::int64_t inner = std::max(count * dims.feed_forward, choices * dims.expert_width);
  act.gate = buffers_.gate.get<float>(inner);
  act.up = buffers_.up.get<float>(inner);
  act.router = buffers_.router.get<float>(count * dims.experts);
  act.chosen = buffers_.chosen.get<ExpertChoice>(choices);
  act.delta = buffers_.delta.get<float>(count * dims.width);
  act.cos = buffers_.cos.get<float>(count * dims.head_dim / 2);
  act.sin = buffers_.sin.get<float>(count * dims.head_dim / 2);
  act.logits = buffers_.logits.get<float>(rows * dims.vocab);
  const ProductBytes bytes = product_bytes();
  share_chunks();
  if (count > kFewTokens) act.normed = buffers_.normed.get<float>(count * dims.width);
  act.prepared = buffers_.prepared.get<std::byte>(static_cast<std::int64_t>(bytes.prepared));
  allocate_scratch(bytes);
}

void CpuExecutor::allocate_scratch(const ProductBytes& bytes) {
  const PlanDims& dims = plan_.dims;
  for (std::size_t member = 0; member < scratch_.size(); ++member) {
    ThreadBuffers& buffers = thread_buffers_[member];
    scratch_[member] = {buffers.normed.get<float>(kFewTokens * dims.width),
                        buffers.prepared.get<std::byte>(static_cast<std::int64_t>(bytes.prepared_alone)),
                        buffers.matmul.get<std::byte>(static_cast<std::int64_t>(bytes.scratch)),
                        buffers.attend.get<float>(attend_scratch_floats(dims.head_dim)),
                        buffers.expert_ends.get<std::int64_t>(dims.experts),
                        buffers.expert_tokens.get<ExpertToken>(std::ssize(step_.act.chosen)),
                        buffers.gathered.get<float>(bytes.gathered * dims.width),
                        buffers.unpacked.get<float>(packing_ ? model_.weights.scratch_floats() : 0)};
  }
}

CpuExecutor::ProductBytes CpuExecutor::product_bytes() const {
  ProductBytes most;
  const auto add = [&most](const Product& product, const MatmulKernel& kernel, std::int64_t rows) {
    std::size_t& prepared = rows <= kFewTokens ? most.prepared_alone : most.prepared;
    prepared = std::max(prepared, kernel.input_bytes(rows, product.cols));
    most.scratch = std::max(most.scratch, kernel.scratch_bytes(product.cols));
  };
  const std::int64_t count = std::ssize(tokens_);
  for (const Product& product : products_) {
    const MatmulKernel& kernel = product.kernels->for_tokens(count);
    if (product.input == Product::Input::router) {
      add(product, router_kernel(*product.kernels, count), count);
    } else if (product.input == Product::Input::experts) {
      most.prepared = std::max(most.prepared, expert_input_bytes(kernel, plan_.dims, count, product.cols));
      most.gathered = std::max(most.gathered, kernel.token_block);
    } else {
      const std::int64_t wanted = std::ssize(logit_rows_);
      add(product, kernel, count);
      add(product, product.kernels->for_tokens(wanted), wanted);
    }
  }
  return most;
}

void CpuExecutor::walk_stages(int member) noexcept {
  StageRunner runner(model_, step_, team_, sharing_, scratch_[static_cast<std::size_t>(member)], member);
  for (std::size_t i = 0; i < plan_.stages.size(); ++i) {
    std::visit(runner, plan_.stages[i]);
    team_.barrier();
    if (!observer_) continue;
    if (member == 0) observer_(i, stage_output(plan_.stages[i]));
    team_.barrier();
  }
}

/// u as the plan has it, where columns of it were divided to be rounded with less error.
std::span<const float> CpuExecutor::undivided(const NormGateUpStage& stage) {
  const std::int64_t width = plan_.dims.feed_forward;
  const auto u = step_.act.gate.first(tokens_.size() * static_cast<std::size_t>(width));
  const float* divisors = model_.weights.divisors(stage.up_proj);
  if (divisors == nullptr) return u;
  observed_.assign(u.begin(), u.end());
  for (auto at = observed_.begin(); at != observed_.end(); at += width) {
    model_.kernels->mul(divisors, width, &*at);
  }
  return observed_;
}

std::span<const float> CpuExecutor::stage_output(const Stage& stage) {
  const Activations& act = step_.act;
  if (std::holds_alternative<NormQkvStage>(stage)) return act.q;
  if (std::holds_alternative<AttendStage>(stage)) return act.attention;
  if (const auto* gate_up = std::get_if<NormGateUpStage>(&stage)) return undivided(*gate_up);
  if (std::holds_alternative<NormHeadStage>(stage)) return act.logits;
  return act.h;
}

void CpuExecutor::collect(std::span<const Slice> slices) {
  std::int64_t row = 0;
  for (std::size_t i = 0; i < slices.size(); ++i) {
    const Slice& slice = slices[i];
    if (slice.tokens.empty() || slice.want == Want::none) continue;
    const std::int64_t rows = slice.want == Want::all ? std::ssize(slice.tokens) : 1;
    if (slice.want == Want::best) {
      results_[i] = best_of(row);
    } else {
      results_[i].logits = step_.act.logits.subspan(static_cast<std::size_t>(row * plan_.dims.vocab),
                                                    static_cast<std::size_t>(rows * plan_.dims.vocab));
    }
    row += rows;
  }
}

/// Joins the members' parts.
SliceResult CpuExecutor::best_of(std::int64_t row) const {
  BestLogit best;
  for (int member = 0; member < team_.size(); ++member) {
    keep_best(best, best_[static_cast<std::size_t>(member * std::ssize(logit_rows_) + row)]);
  }
  SliceResult result;
  result.best = static_cast<TokenId>(best.index);
  result.not_finite = static_cast<TokenId>(best.not_finite);
  return result;
}

}  // namespace qgen
