#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "qgen/device/device.h"
#include "qgen/kernels/kernel_table.h"
#include "support/random_model.h"

namespace qgen::test {

inline std::vector<TokenId> random_tokens(std::size_t count, std::uint32_t seed = 3) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 67);
  return tokens;
}

/// Bits of floats, so that equality means the same bits and a failure prints them.
using Bits = std::vector<std::uint32_t>;

inline Bits bits(std::span<const float> values) {
  Bits result(values.size());
  std::ranges::transform(values, result.begin(),
                         [](float value) { return std::bit_cast<std::uint32_t>(value); });
  return result;
}

/// A kernel table and how weights are held.
struct Way {
  const KernelTable* kernels;
  const char* weights;
};

inline std::vector<Way> all_ways() {
  std::vector<Way> ways;
  for (const KernelTable* kernels : available_kernels()) {
    for (const char* weights : {"auto", "q8", "q4"}) ways.push_back({kernels, weights});
  }
  return ways;
}

inline std::string way_name(const testing::TestParamInfo<Way>& info) {
  return std::string(info.param.kernels->name) + "_" + info.param.weights;
}

/// Runs models on the cpu device in one of the ways.
class ExecutorFixture : public testing::TestWithParam<Way> {
 protected:
  static std::unique_ptr<Executor> compile(const RandomModel& model, int threads = 2) {
    DeviceOptions options;
    options.threads = threads;
    options.kernels = std::string(GetParam().kernels->name);
    options.weights = GetParam().weights;
    return find_device("cpu", model.plan()).compile(model.plan(), options);
  }

  static Bits feed(Executor& executor, Timeline& timeline, std::span<const TokenId> tokens,
                   Want want = Want::last) {
    const Slice slice{&timeline, tokens, want};
    return bits(executor.run({&slice, 1}).front().logits);
  }
};

}  // namespace qgen::test
