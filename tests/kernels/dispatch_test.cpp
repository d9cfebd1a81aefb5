#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "kernels/built_tables.h"
#include "qgen/base/error.h"
#include "qgen/kernels/kernel_table.h"

namespace qgen {
namespace {

using kernels::best_table;
using kernels::CpuFeatures;
using testing::Contains;
using testing::HasSubstr;

#if defined(__x86_64__)
CpuFeatures haswell() {
  CpuFeatures f;
  f.popcnt = f.avx2 = f.fma = f.f16c = true;
  return f;
}

CpuFeatures ice_lake() {
  CpuFeatures f = haswell();
  f.avx512f = f.avx512bw = f.avx512dq = f.avx512vl = f.avx512_vnni = true;
  return f;
}

TEST(DispatchRule, TakesScalarWhereAnyPartOfAvx2IsMissing) {
  EXPECT_EQ(best_table({}).name, "scalar");
  for (bool CpuFeatures::*part :
       {&CpuFeatures::avx2, &CpuFeatures::fma, &CpuFeatures::f16c, &CpuFeatures::popcnt}) {
    CpuFeatures f = haswell();
    f.*part = false;
    EXPECT_EQ(best_table(f).name, "scalar");
  }
  EXPECT_EQ(best_table(haswell()).name, "avx2");
}

TEST(DispatchRule, TakesAvxVnniWhereItComesWithAvx2) {
  CpuFeatures f = haswell();
  f.avx_vnni = true;
  EXPECT_EQ(best_table(f).name, "avxvnni");
  f.fma = false;
  EXPECT_EQ(best_table(f).name, "scalar");
}

TEST(DispatchRule, TakesAvx2WhereAnyPartOfAvx512IsMissing) {
  for (bool CpuFeatures::*part : {&CpuFeatures::avx512f, &CpuFeatures::avx512bw, &CpuFeatures::avx512dq,
                                  &CpuFeatures::avx512vl, &CpuFeatures::avx512_vnni}) {
    CpuFeatures f = ice_lake();
    f.*part = false;
    EXPECT_EQ(best_table(f).name, "avx2");
  }
  EXPECT_EQ(best_table(ice_lake()).name, "avx512");
}

CpuFeatures cooper_lake() {
  CpuFeatures f = ice_lake();
  f.avx512_bf16 = true;
  return f;
}

CpuFeatures sapphire_rapids() {
  CpuFeatures f = cooper_lake();
  f.amx_tile = f.amx_bf16 = true;
  return f;
}

TEST(DispatchRule, TakesProductsOfBf16VectorsOnlyWhereTheyAreFast) {
  EXPECT_EQ(best_table(cooper_lake()).name, "avx512");
  CpuFeatures zen4 = cooper_lake();
  zen4.amd = true;
  EXPECT_EQ(best_table(zen4).name, "avx512bf16");
  CpuFeatures zen3 = haswell();
  zen3.amd = true;
  EXPECT_EQ(best_table(zen3).name, "avx2");
}

TEST(DispatchRule, TakesTilesWhereverTheyAreComplete) {
  EXPECT_EQ(best_table(sapphire_rapids()).name, "amx");
  CpuFeatures amd = sapphire_rapids();
  amd.amd = true;
  EXPECT_EQ(best_table(amd).name, "amx");
  for (bool CpuFeatures::*part : {&CpuFeatures::amx_tile, &CpuFeatures::amx_bf16, &CpuFeatures::avx512_bf16,
                                  &CpuFeatures::avx512_vnni}) {
    CpuFeatures f = sapphire_rapids();
    f.*part = false;
    EXPECT_NE(best_table(f).name, "amx");
  }
}
#elif defined(__aarch64__)
TEST(DispatchRule, TakesNeonWhereItComesWithDotProducts) {
  CpuFeatures f;
  EXPECT_EQ(best_table(f).name, "scalar");
  f.asimd_dot_product = true;
  EXPECT_EQ(best_table(f).name, "neon");
}
#endif

TEST(Dispatch, ListsPlainestFirstAndBestLast) {
  const auto available = available_kernels();
  ASSERT_FALSE(available.empty());
  EXPECT_EQ(available.front()->name, "scalar");
  EXPECT_EQ(available.back(), &best_kernels());
  for (const KernelTable* table : available) {
    EXPECT_THAT(built_kernels(), Contains(table->name));
    EXPECT_EQ(&kernels_named(table->name), table);
    EXPECT_EQ(std::ranges::count(available, table), 1);
  }
}

TEST(Dispatch, RefusesAnUnknownNameWithTheListOfKnownOnes) {
  for (const std::string name : {"", "avx", "AVX2", "a\nb"}) {
    try {
      static_cast<void>(kernels_named(name));
      ADD_FAILURE() << "accepted '" << name << "'";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::usage);
      for (const std::string_view built : built_kernels()) {
        EXPECT_THAT(error.what(), HasSubstr(std::string(built)));
      }
      EXPECT_THAT(error.what(), testing::Not(HasSubstr("\n")));
    }
  }
}

TEST(Dispatch, RefusesTablesThatThisProcessorLacksWithTheListOfUsableOnes) {
  const auto available = available_kernels();
  // Tables of other kinds of processors, which this build does not even have, are known by name too.
  for (const std::string_view name : {"avx2", "avxvnni", "avx512", "avx512bf16", "amx", "neon"}) {
    if (std::ranges::any_of(available, [&](const KernelTable* table) { return table->name == name; }))
      continue;
    try {
      static_cast<void>(kernels_named(name));
      ADD_FAILURE() << "gave " << name;
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::unsupported);
      EXPECT_THAT(error.what(), HasSubstr(std::string(name)));
      EXPECT_THAT(error.what(), HasSubstr("scalar"));
    }
  }
}

TEST(Dispatch, NamesFeaturesThatExplainTheAvailableTables) {
  const auto available = available_kernels();
  const auto features = cpu_features();
  const bool has_avx2_table =
      std::ranges::any_of(available, [](const KernelTable* table) { return table->name == "avx2"; });
  const bool has_all =
      std::ranges::all_of(std::array<std::string_view, 4>{"avx2", "fma", "f16c", "popcnt"},
                          [&](std::string_view name) { return std::ranges::count(features, name) == 1; });
  EXPECT_EQ(has_avx2_table, has_all);
}

}  // namespace
}  // namespace qgen
