#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/base/bytes.h"

namespace qgen::cli {

/// Which part of a prompt that does not fit is dropped.
enum class Overflow { error, head, tail, middle };

/// The words of --overflow, in the order of the enumeration.
inline constexpr std::array<std::string_view, 4> kOverflowWords{"error", "head", "tail", "middle"};

struct FitLimits {
  std::int64_t context = 0;      ///< at least 2
  std::int64_t max_tokens = -1;  ///< -1: not said
  std::optional<TokenId> start;  ///< a start token in front is never dropped
};

/// Drops from `prompt`, which does not fit (as many tokens as the context, or more), so many tokens that the
/// reply has room: max_tokens of them where said, but at most half of the context; else a quarter of it.
/// Returns one clause that says how many went and from where.
std::string drop_overflow(std::vector<TokenId>& prompt, Overflow overflow, const FitLimits& limits);

}  // namespace qgen::cli
