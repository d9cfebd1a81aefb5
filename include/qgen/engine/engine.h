#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/base/bytes.h"
#include "qgen/base/log.h"
#include "qgen/device/device.h"
#include "qgen/tokenizer/tokenizer.h"
#include "qgen/weights/model_config.h"

namespace qgen {

/// The files of a model that is compiled into the program.
struct EmbeddedModel {
  std::string_view name;
  Bytes config, generation_config, tokenizer, tokenizer_config, weights;
};

/// The files of a model that a training script left: see read_torch_model (weights/torch_model.h).
struct CheckpointFiles {
  std::filesystem::path checkpoint;     ///< of torch.save
  std::filesystem::path vocab, merges;  ///< pickles, or texts in GPT-2's alphabet; both or neither
  std::filesystem::path tokenizer;      ///< tokenizer.json; where `vocab` and `merges` are empty
  std::int64_t heads = 0;               ///< 0: the checkpoint says
};

/// The tokenizer alone. vocab and merges split texts by GPT-2's rule, and <|endoftext|>, where the vocabulary
/// has it, is a control token that ends a text. Throws Error naming the file.
Tokenizer read_checkpoint_tokenizer(const CheckpointFiles& files);

struct EngineOptions {
  std::string device = "auto";
  DeviceOptions device_options;
  std::int64_t context = 0;  ///< 0: the model's own maximum
  /// Keeps the weights as the device holds them: mapped where it has those of this model, else written, and
  /// replaced where it has those of another. Empty: none.
  std::filesystem::path packed;
};

class Session;

/// A loaded model: immutable, except that its sessions run on one executor and so must not run at the same
/// time.
class Engine {
 public:
  /// Loads a model folder. Throws Error naming file, tensor or key.
  static Engine from_folder(const std::filesystem::path& folder, const EngineOptions& options,
                            const Log& log);
  /// Loads a GGUF file (the first, where it is split).
  static Engine from_gguf(const std::filesystem::path& path, const EngineOptions& options, const Log& log);
  /// Loads a checkpoint and the tokenizer beside it. Beyond the tokenizer's own end tokens, <|endoftext|>
  /// ends a text where the tokenizer knows it, and <|im_end|> if `tokenizer` is not named as that of a base
  /// model ("base").
  static Engine from_checkpoint(const CheckpointFiles& files, const EngineOptions& options, const Log& log);
  static Engine from_embedded(const EmbeddedModel& model, const EngineOptions& options, const Log& log);
  ~Engine();
  Engine(Engine&&) noexcept;
  Engine& operator=(Engine&&) noexcept;

  [[nodiscard]] const Tokenizer& tokenizer() const noexcept;
  [[nodiscard]] const ModelConfig& config() const noexcept;
  [[nodiscard]] const GenerationConfig& generation_config() const noexcept;
  /// Positions that a session may fill.
  [[nodiscard]] std::int64_t context() const noexcept;
  /// Rows of the output matrix.
  [[nodiscard]] std::int64_t vocab() const noexcept;
  /// All ids that end a text: of generation_config, config and tokenizer, sorted, each once.
  [[nodiscard]] const std::vector<TokenId>& end_ids() const noexcept;
  /// For each vocabulary row whether it stands for a token.
  [[nodiscard]] const std::vector<bool>& allowed() const noexcept;
  /// Parameters of the model; tied matrices count once.
  [[nodiscard]] std::int64_t parameters() const noexcept;
  /// Parameters in the layers' matrices: what prefill multiplies each token by (embedding and head left out;
  /// of experts, as many as a token goes to).
  [[nodiscard]] std::int64_t layer_parameters() const noexcept;
  [[nodiscard]] const Executor& executor() const noexcept;
  /// Executor::read_weights(). Not while a session runs.
  [[nodiscard]] std::optional<double> read_weights() const;

  /// `recompute`: keep no cache, feed the whole sequence anew at each step.
  [[nodiscard]] Session new_session(bool recompute = false) const;

 private:
  friend class Session;
  struct Impl;
  explicit Engine(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Only the tokenizer of a GGUF file; reads no tensors.
Tokenizer read_gguf_tokenizer(const std::filesystem::path& path);

/// Logits after a token, or only the best id. Valid until the engine's next step.
struct Logits {
  std::span<const float> values;  ///< [rows, V]
  TokenId best = -1;
  TokenId not_finite = -1;
};

/// One text in the making. Must not outlive its engine.
class Session {
 public:
  ~Session();
  Session(Session&&) noexcept;
  Session& operator=(Session&&) noexcept;

  /// Tokens fed so far.
  [[nodiscard]] std::int64_t position() const noexcept;
  [[nodiscard]] std::span<const TokenId> tokens() const noexcept;

  /// Appends tokens (at least one; position() + count <= Engine::context()) and gives what is wanted. Long
  /// prompts are cut at multiples of a fixed number of positions counted from the start. `progress(done)` is
  /// called between cuts and stops the feeding (result empty) by returning false. Throws
  /// Error{memory} where the cache cannot grow; the session is then as before.
  Logits feed(std::span<const TokenId> tokens, Want want,
              const std::function<bool(std::int64_t done)>& progress = {});

  /// Forgets everything from `position` on.
  void rewind(std::int64_t position);
  /// Drops `count` tokens after the first `keep` and recomputes the rest, so that the result equals a fresh
  /// run over the tokens that are left (rotary positions start anew).
  Logits slide(std::int64_t keep, std::int64_t count, Want want);
  /// An independent continuation of the same past.
  [[nodiscard]] Session fork() const;
  [[nodiscard]] std::size_t cache_bytes() const noexcept;

 private:
  friend class Engine;
  struct Impl;
  explicit Session(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace qgen
