// Attention by tiles of AMX on a model of the tile registers. Packing uses AVX-512, as the real kernel does.
#if defined(__x86_64__)
#include "kernels/attention.h"
#include "kernels/generic/includes.h"
#include "kernels/intrinsics.h"
#include "kernels/tile_model.h"

#define QGEN_REGION_TARGET "avx2,fma,f16c,avx512f,avx512bw,avx512dq,avx512vl,avx512vnni,avx512bf16"
#include "kernels/region_begin.h"
namespace qgen::kernels::tile_attention {
namespace {
#include "kernels/vocabulary/avx512.inl"
//
// clang-format off
#include "kernels/generic/elements.inl"
#include "kernels/vocabulary/avx512_bf16.inl"
#include "kernels/generic/panels.inl"
#include "kernels/generic/panel_integer.inl"
#include "kernels/generic/group_rotation.inl"
#include "kernels/generic/tiles.inl"
#include "kernels/generic/elementwise.inl"
#include "kernels/generic/attention.inl"
#include "kernels/generic/attention_tiles.inl"
// clang-format on

template <class T, class Rounding>
void attend_on_model(const AttendArgs& args) noexcept {
  test::TileModel registers;
  tile_attend<T, Rounding>(registers, args);
}

using Attend = void (*)(const AttendArgs&) noexcept;
/// By KvType.
template <class Rounding>
constexpr std::array<Attend, kKvTypes> kOnModel{
    attend_on_model<F32, Rounding>, attend_on_model<F16, Rounding>, attend_on_model<Bf16, Rounding>,
    attend_on_model<I8, Rounding>};
constexpr auto kInSteps = kOnModel<TileRounding>;
constexpr auto kByInstruction = kOnModel<RoundedPairs>;
}  // namespace
}  // namespace qgen::kernels::tile_attention
#include "kernels/region_end.h"

namespace qgen::test {
namespace {

using kernels::tile_attention::kByInstruction;
using kernels::tile_attention::kInSteps;

/// Rounding to bf16 takes several instructions, or one that not all processors have.
class TileAttention : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const auto available = available_kernels();
    const std::string_view needed = by_instruction() ? "avx512bf16" : "avx512";
    const auto found = std::ranges::find(available, needed, &KernelTable::name);
    if (found == available.end()) GTEST_SKIP() << "this processor cannot run the kernels " << needed;
    table_ = **found;
    for (std::size_t i = 0; i < kKvTypes; ++i) {
      table_.kv[i].attend_bulk = (by_instruction() ? kByInstruction : kInSteps)[i];
    }
  }
  static bool by_instruction() { return std::string_view(GetParam()) == "ByInstruction"; }
  [[nodiscard]] const KernelTable& table() const { return table_; }

 private:
  KernelTable table_;
};

TEST_P(TileAttention, MatchesReferenceForAllHeadSizesAndCounts) {
  expect_bulk_near_reference(table(), kBf16Unit);
}

TEST_P(TileAttention, NonFiniteKeysValuesAndQueriesShow) {
  expect_non_finite_to_show(table(), true);
}

TEST_P(TileAttention, QueriesGetTheSameBitsAloneAndTogetherWhateverLiesBeyond) {
  expect_same_bits_alone_and_together(table(), true);
}

TEST_P(TileAttention, NothingVisibleGivesNothing) {
  expect_nothing_from_nothing_visible(table(), true);
}

INSTANTIATE_TEST_SUITE_P(Rounding, TileAttention, testing::Values("InSteps", "ByInstruction"),
                         [](const auto& test) { return std::string(test.param); });

}  // namespace
}  // namespace qgen::test
#endif
