#include "cli/run/overflow.h"

#include <algorithm>

namespace qgen::cli {
namespace {

std::int64_t room_for_reply(const FitLimits& limits) {
  const std::int64_t wanted =
      limits.max_tokens >= 0 ? std::min(limits.max_tokens, limits.context / 2) : limits.context / 4;
  return std::max<std::int64_t>(wanted, 1);
}

}  // namespace

std::string drop_overflow(std::vector<TokenId>& prompt, Overflow overflow, const FitLimits& limits) {
  const auto count = static_cast<std::int64_t>(prompt.size());
  const std::int64_t kept_start = limits.start && prompt.front() == *limits.start ? 1 : 0;
  const std::int64_t keep = limits.context - room_for_reply(limits);
  const std::int64_t dropped = count - keep;
  std::int64_t from = 0;
  std::string where;
  switch (overflow) {
    case Overflow::tail:
      from = keep;
      where = "end";
      break;
    case Overflow::middle:
      from = std::max(kept_start, keep / 2);
      where = "middle";
      break;
    case Overflow::error:
    case Overflow::head:
      from = std::min(kept_start, keep);
      where = "beginning";
      break;
  }
  prompt.erase(prompt.begin() + from, prompt.begin() + from + dropped);
  return "dropped " + std::to_string(dropped) + " of " + std::to_string(count) + " prompt tokens from the " +
         where + ", the context holds " + std::to_string(limits.context);
}

}  // namespace qgen::cli
