#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/base/bytes.h"
#include "qgen/plan/plan.h"

namespace qgen {

/// Called with source bytes of weights that a device has taken in and hardly needs any more, so that their
/// pages may be given back; they must stay readable. Called from several threads; must not throw.
using ConsumedHook = std::function<void(Bytes)>;

/// What a compiled plan may use.
struct DeviceOptions {
  int threads = 0;               ///< 0: default_threads() of cpu_info.h
  std::string kernels;           ///< name of a kernel table; empty: the best
  std::string weights = "auto";  ///< auto, bf16, q8, q4; auto: as the file has them, see packed_type_of()
  std::string kv = "auto";       ///< auto, f32, f16, bf16, q8; auto: f32 for f32 weights, else f16
  ConsumedHook consumed;
  /// Executor::packed_weights() of an earlier executor with the same packing(), to be used where it lies
  /// instead of packing anew; must outlive the executor. A sample of it is compared with the plan's weights:
  /// where that differs it is not used.
  Bytes packed;
};

/// One sequence: its cached keys and values. Belongs to the executor that made it and must not outlive it.
class Timeline {
 public:
  virtual ~Timeline() = default;
  /// How many tokens it holds.
  [[nodiscard]] virtual std::int64_t position() const noexcept = 0;
  /// Forgets everything from `position` on (0..position()).
  virtual void truncate(std::int64_t position) = 0;
  /// An independent continuation of the same past; memory is shared until either side writes.
  [[nodiscard]] virtual std::unique_ptr<Timeline> fork() const = 0;
  /// Bytes of cache memory that it keeps alive.
  [[nodiscard]] virtual std::size_t bytes() const noexcept = 0;
};

/// Which logits of a slice are wanted.
enum class Want : std::uint8_t {
  none,
  last,  ///< one row, for the last token
  all,   ///< one row a token
  best,  ///< only the arg-max for the last token
};

/// Tokens to append to a timeline in one step.
struct Slice {
  Timeline* timeline = nullptr;
  std::span<const TokenId> tokens;
  Want want = Want::last;
};

/// What a slice gave. Spans are valid until the executor's next run.
struct SliceResult {
  std::span<const float> logits;  ///< [rows, V]: none, one or all rows as asked
  TokenId best = -1;              ///< for Want::best: lowest id of the largest logit among the allowed ids
  TokenId not_finite = -1;        ///< for Want::best: lowest allowed id whose logit is NaN or +inf; -1: none
};

/// Called after each stage with the stage's index in the plan and its output for all tokens of the run,
/// row-major: the residual h[T, D] after Embed, ProjectAdd and Moe, q[T, H*d] after NormQkv, a[T, H*d] after
/// Attend, u[T, F] after NormGateUp, the wanted logits after NormHead.
using StageObserver = std::function<void(std::size_t stage, std::span<const float> values)>;

/// A plan made ready to run on a device. Not for use by two threads at once.
class Executor {
 public:
  virtual ~Executor() = default;
  [[nodiscard]] virtual std::unique_ptr<Timeline> new_timeline() = 0;
  /// Runs one step over all slices together (each timeline at most once). Token ids must be in 0..V-1. Throws
  /// Error{memory} where the cache cannot grow; timelines are then as before the call. The results live until
  /// the next call.
  virtual std::span<const SliceResult> run(std::span<const Slice> slices) = 0;
  /// Restricts Want::best to ids for which the mask is true (and within it); at first all are allowed.
  virtual void set_allowed(std::vector<bool> allowed) = 0;
  virtual void set_observer(StageObserver observer) = 0;
  /// "cpu: avx512, 2 threads, f16 cache" and the like.
  [[nodiscard]] virtual std::string description() const = 0;
  [[nodiscard]] virtual int threads() const noexcept = 0;
  /// How most of the matrices are held: "f32", "f16", "bf16", "q8", "q4", "q4_1", "q4_k" or "q6_k".
  [[nodiscard]] virtual std::string_view weight_type() const noexcept = 0;
  /// The weights in the form that steps read, to be kept for DeviceOptions::packed; DeviceOptions::packed
  /// itself where that is in use; nothing where the device has no such form.
  [[nodiscard]] virtual Bytes packed_weights() const noexcept { return {}; }
  /// Reads all weights once by plain loads, with the threads that steps run on; gives bytes per second, or
  /// nothing where the device has no way to. Not during a run.
  [[nodiscard]] virtual std::optional<double> read_weights() { return std::nullopt; }
  /// Bytes of weights that one decode step of one token reads: of experts, the chosen ones.
  [[nodiscard]] virtual std::int64_t weight_bytes_per_token() const noexcept = 0;
  /// Bytes of cache that one position of a timeline takes (and that each later token reads).
  [[nodiscard]] virtual std::int64_t cache_bytes_per_position() const noexcept = 0;
};

/// Bits that the cpu device takes for a weight stored as `dtype`, a weight type; `weights`: see
/// DeviceOptions, unknown names count as auto.
[[nodiscard]] double held_bits(DType dtype, std::string_view weights) noexcept;

/// Something that runs plans.
class Device {
 public:
  virtual ~Device() = default;
  [[nodiscard]] virtual std::string_view name() const noexcept = 0;
  /// Nothing, or why this device cannot run the plan here.
  [[nodiscard]] virtual std::optional<std::string> supports(const Plan& plan) const = 0;
  /// Everything that the form and the size of packed weights depend on but their numbers, as text; empty
  /// where the device has no such form. Throws Error{usage} as compile() does.
  [[nodiscard]] virtual std::string packing(const Plan& /*plan*/, const DeviceOptions& /*options*/) const {
    return {};
  }
  /// Makes the plan ready. The plan's weights must outlive the executor. Throws Error.
  [[nodiscard]] virtual std::unique_ptr<Executor> compile(const Plan& plan,
                                                          const DeviceOptions& options) const = 0;
};

/// The devices in this build, the preferred first; "reference" is last and never chosen by itself.
[[nodiscard]] std::span<const Device* const> devices();
/// The device called `name`, or for "auto" the first that supports the plan. Throws Error{usage} for an
/// unknown name and Error{device} for one that is not built or cannot serve, naming the reason.
[[nodiscard]] const Device& find_device(std::string_view name, const Plan& plan);

}  // namespace qgen
