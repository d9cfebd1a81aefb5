#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "device/cpu/kv_cache.h"
#include "device/cpu/step.h"
#include "device/cpu/thread_team.h"
#include "device/cpu/workspace.h"
#include "qgen/device/device.h"

namespace qgen {

/// Runs a plan with a team of threads that walk the stage list together and meet at one barrier a stage.
class CpuExecutor final : public Executor {
 public:
  /// How numbers are held; no weight type: each matrix as its file has it.
  struct Types {
    std::optional<PackedType> weights;
    KvType kv = KvType::f16;
  };

  CpuExecutor(Plan plan, const KernelTable& kernels, const Types& types, int threads, PackSource source);

  std::unique_ptr<Timeline> new_timeline() override;
  std::span<const SliceResult> run(std::span<const Slice> slices) override;
  void set_allowed(std::vector<bool> allowed) override;
  void set_observer(StageObserver observer) override { observer_ = std::move(observer); }
  [[nodiscard]] std::string description() const override;
  [[nodiscard]] int threads() const noexcept override { return team_.size(); }
  [[nodiscard]] std::string_view weight_type() const noexcept override;
  [[nodiscard]] Bytes packed_weights() const noexcept override { return model_.weights.memory(); }
  [[nodiscard]] std::optional<double> read_weights() override;
  [[nodiscard]] std::int64_t weight_bytes_per_token() const noexcept override;
  [[nodiscard]] std::int64_t cache_bytes_per_position() const noexcept override;

 private:
  struct Buffers {
    GrowingBuffer h, normed, q, kv, attention, parts, gate, up, delta, router, chosen, cos, sin, logits,
        prepared;
  };
  struct ThreadBuffers {
    GrowingBuffer normed, prepared, matmul, attend, expert_ends, expert_tokens, gathered, unpacked;
  };
  /// A product that needs buffers of its own size; of all those that need the same there is one.
  struct Product {
    enum class Input : std::uint8_t { rows, router, experts };
    const PackedKernels* kernels;
    std::int64_t cols;
    Input input;
    bool operator==(const Product&) const = default;
  };
  /// The largest buffers that any product of a step needs, in bytes and, of rows of experts, in rows.
  struct ProductBytes {
    std::size_t prepared = 0, prepared_alone = 0, scratch = 0;
    std::int64_t gathered = 0;
  };

  void pack_weights();
  void balance(std::size_t input, std::span<const float> values);
  void divide_norm(WeightId norm);
  void lay_out(std::span<const Slice> slices);
  void add_units(std::int64_t first, std::int64_t count);
  void share_chunks();
  void allocate();
  void allocate_scratch(const ProductBytes& bytes);
  void list_products();
  [[nodiscard]] ProductBytes product_bytes() const;
  [[nodiscard]] std::int64_t unchosen_bytes(const MoeStage& stage) const noexcept;
  void walk_stages(int member) noexcept;
  [[nodiscard]] std::span<const float> stage_output(const Stage& stage);
  [[nodiscard]] std::span<const float> undivided(const NormGateUpStage& stage);
  void collect(std::span<const Slice> slices);
  [[nodiscard]] SliceResult best_of(std::int64_t row) const;

  Plan plan_;
  ThreadTeam team_;
  BlockSharing sharing_;
  CpuModel model_;
  std::vector<Product> products_;
  std::shared_ptr<KvPages> pages_;
  std::vector<ThreadBuffers> thread_buffers_;  // one a member, as is scratch_
  std::vector<ThreadScratch> scratch_;
  Buffers buffers_;
  bool packing_ = false;
  StageObserver observer_;
  std::vector<float> observed_;
  std::vector<Range> banned_;

  // The step at hand; Step refers to these.
  std::vector<StepToken> tokens_;
  std::vector<AttendUnit> units_;
  std::vector<std::atomic<std::int64_t>> chunks_done_;
  std::vector<std::int64_t> logit_rows_;
  std::vector<std::uint8_t> only_best_;
  std::vector<BestLogit> best_;
  std::vector<SliceResult> results_;
  Step step_;
};

}  // namespace qgen
