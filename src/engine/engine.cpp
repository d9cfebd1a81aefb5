#include "qgen/engine/engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <string>

#include "engine/checkpoint_files.h"
#include "engine/engine_impl.h"
#include "engine/model_files.h"
#include "qgen/base/error.h"
#include "qgen/models/architecture.h"

namespace qgen {
namespace {

/// Every id of the tokenizer must have a row; rows without an id are padding.
void check_vocabulary(const ModelConfig& config, const Tokenizer& tokenizer, std::int64_t rows) {
  if (tokenizer.size() <= rows) return;
  throw Error(ErrorKind::file, config.source + ": vocab_size is " + std::to_string(rows) +
                                   ", but the tokenizer has ids up to " +
                                   std::to_string(tokenizer.size() - 1));
}

std::vector<TokenId> collect_end_ids(const ModelFiles& files, const Tokenizer& tokenizer, std::int64_t rows) {
  std::set<TokenId> all;
  const auto add = [&](const std::vector<TokenId>& ids, const char* file) {
    for (const TokenId id : ids) {
      if (id < 0 || id >= rows) {
        throw Error(ErrorKind::file, std::string(file) + ": eos_token_id " + std::to_string(id) +
                                         " is outside the vocabulary of " + std::to_string(rows));
      }
      all.insert(id);
    }
  };
  add(files.config.eos_token_ids, "config.json");
  add(files.generation_config.eos_token_ids, "generation_config.json");
  add(tokenizer.end_ids(), "tokenizer_config.json");
  return {all.begin(), all.end()};
}

std::vector<bool> collect_allowed(const Tokenizer& tokenizer, std::int64_t rows) {
  std::vector<bool> allowed(static_cast<std::size_t>(rows));
  for (std::int64_t id = 0; id < rows; ++id) {
    allowed[static_cast<std::size_t>(id)] = tokenizer.is_known(static_cast<TokenId>(id));
  }
  return allowed;
}

std::int64_t choose_context(std::int64_t asked, std::int64_t most) {
  if (asked == 0) return most;
  if (asked < 0 || asked > most) {
    throw Error(ErrorKind::usage, "context size " + std::to_string(asked) +
                                      " is out of range: this model has 1 to " + std::to_string(most) +
                                      " positions");
  }
  return asked;
}

/// Calls `visit(view)` once for each distinct tensor, so that tied matrices count once.
template <typename Visit>
void for_each_tensor(const Plan& plan, Visit visit) {
  std::set<const std::byte*> seen;
  for (const PlanWeight& weight : plan.weights) {
    if (seen.insert(weight.view.data).second) visit(weight.view);
  }
}

std::int64_t elements(const TensorView& view) {
  return view.rows * view.cols;
}

/// Calls `visit(view)` for each matrix in the layers.
template <typename Visit>
void for_each_layer_matrix(const Plan& plan, Visit visit) {
  for (const Stage& stage : plan.stages) {
    if (std::holds_alternative<NormHeadStage>(stage)) continue;
    for (const WeightId id : matrices_of(stage)) visit(plan.weight(id));
  }
}

/// About how many megabytes the matrices take when they are held as `type` says; see DeviceOptions::weights.
std::int64_t megabytes_to_hold(const Plan& plan, const std::string& type) {
  double bits = 0;
  const auto add = [&](const TensorView& view) {
    bits += held_bits(view.dtype, type) * static_cast<double>(elements(view));
  };
  for_each_layer_matrix(plan, add);
  add(plan.weight(std::get<NormHeadStage>(plan.stages.back()).head));
  return static_cast<std::int64_t>(std::ceil(bits / 8e6));
}

/// What the packed weights of this model and device are known by.
std::string packed_header(const Device& device, const Plan& plan, const DeviceOptions& options,
                          const Checkpoint& checkpoint) {
  const std::string packing = device.packing(plan, options);
  if (packing.empty()) {
    throw Error(ErrorKind::usage,
                "the device " + std::string(device.name()) + " has no packed weights to keep");
  }
  return packing + checkpoint.stamp();
}

/// A text can be had without the file, so that it cannot be written is no error.
void keep_packed(PackedFile& file, const Executor& executor, const Log& log) {
  const Bytes held = executor.packed_weights();
  if (held.data() == file.weights().data()) return;
  try {
    file.write(held);
    log.verbose("packed weights written, " + std::to_string(held.size()) + " bytes");
  } catch (const Error& error) {
    log.warning("packed weights are not kept: " + std::string(error.what()));
  }
}

}  // namespace

std::unique_ptr<Engine::Impl> Engine::Impl::assemble(ModelFiles files, const EngineOptions& options,
                                                     const Log& log) {
  auto impl = std::make_unique<Impl>(std::move(files));
  const ModelFiles& own = impl->files;
  impl->plan = find_architecture(own.config).plan(own.config, own.checkpoint);
  const std::int64_t rows = impl->plan.dims.vocab;
  impl->context = choose_context(options.context, impl->plan.dims.context);
  DeviceOptions device_options = options.device_options;
  device_options.consumed = [&own](Bytes part) { own.checkpoint.release(part); };
  const Device& device = find_device(options.device, impl->plan);
  log.verbose("memory needed: about " +
              std::to_string(megabytes_to_hold(impl->plan, device_options.weights)) +
              " MB for weights; the cache grows with the text");
  if (!options.packed.empty()) {
    impl->packed.emplace(options.packed, packed_header(device, impl->plan, device_options, own.checkpoint));
    device_options.packed = impl->packed->weights();
  }
  // A tokenizer that cannot be read at all is told of before much is packed.
  if (impl->files.tokenizer.wait_for(std::chrono::milliseconds(1)) == std::future_status::ready) {
    impl->tokenizer = impl->files.tokenizer.get();
  }
  impl->executor = device.compile(impl->plan, device_options);
  if (impl->packed) keep_packed(*impl->packed, *impl->executor, log);
  if (!impl->tokenizer) impl->tokenizer = impl->files.tokenizer.get();
  check_vocabulary(own.config, *impl->tokenizer, rows);
  impl->end_ids = collect_end_ids(own, *impl->tokenizer, rows);
  impl->allowed = collect_allowed(*impl->tokenizer, rows);
  impl->executor->set_allowed(impl->allowed);
  log.verbose(impl->executor->description());
  return impl;
}

Engine Engine::from_folder(const std::filesystem::path& folder, const EngineOptions& options,
                           const Log& log) {
  return Engine(Impl::assemble(read_model_folder(folder, log, options.packed.empty()), options, log));
}

Engine Engine::from_checkpoint(const CheckpointFiles& files, const EngineOptions& options, const Log& log) {
  return Engine(Impl::assemble(read_checkpoint_files(files, options.context), options, log));
}

Engine Engine::from_embedded(const EmbeddedModel& model, const EngineOptions& options, const Log& log) {
  return Engine(Impl::assemble(read_embedded_model(model), options, log));
}

Engine::Engine(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Engine::~Engine() = default;
Engine::Engine(Engine&&) noexcept = default;
Engine& Engine::operator=(Engine&&) noexcept = default;

const Tokenizer& Engine::tokenizer() const noexcept {
  return *impl_->tokenizer;
}
const ModelConfig& Engine::config() const noexcept {
  return impl_->files.config;
}
const GenerationConfig& Engine::generation_config() const noexcept {
  return impl_->files.generation_config;
}
std::int64_t Engine::context() const noexcept {
  return impl_->context;
}
std::int64_t Engine::vocab() const noexcept {
  return impl_->plan.dims.vocab;
}
const std::vector<TokenId>& Engine::end_ids() const noexcept {
  return impl_->end_ids;
}
const std::vector<bool>& Engine::allowed() const noexcept {
  return impl_->allowed;
}
const Executor& Engine::executor() const noexcept {
  return *impl_->executor;
}

std::optional<double> Engine::read_weights() const {
  return impl_->executor->read_weights();
}

std::int64_t Engine::parameters() const noexcept {
  std::int64_t count = 0;
  for_each_tensor(impl_->plan, [&](const TensorView& view) { count += elements(view); });
  return count;
}

std::int64_t Engine::layer_parameters() const noexcept {
  std::int64_t count = 0;
  for_each_layer_matrix(impl_->plan, [&](const TensorView& view) { count += elements(view); });
  const PlanDims& dims = impl_->plan.dims;
  const std::int64_t unchosen = (dims.experts - dims.experts_per_token) * 3 * dims.expert_width * dims.width;
  for (const Stage& stage : impl_->plan.stages) {
    if (std::holds_alternative<MoeStage>(stage)) count -= unchosen;
  }
  return count;
}

}  // namespace qgen
