#include "generate/stop_matcher.h"

#include <algorithm>
#include <utility>

namespace qgen {
namespace {

std::vector<std::size_t> borders_of(std::string_view text) {
  std::vector<std::size_t> border(text.size() + 1, 0);
  for (std::size_t n = 1; n < text.size(); ++n) {
    std::size_t length = border[n];
    while (length > 0 && text[length] != text[n]) length = border[length];
    border[n + 1] = text[length] == text[n] ? length + 1 : 0;
  }
  return border;
}

}  // namespace

StopMatcher::StopMatcher(const std::vector<std::string>& strings) {
  for (const std::string& string : strings) {
    if (!string.empty()) patterns_.push_back({string, borders_of(string), 0});
  }
}

void StopMatcher::advance(Pattern& pattern, char byte) {
  while (pattern.matched > 0 && pattern.text[pattern.matched] != byte) {
    pattern.matched = pattern.border[pattern.matched];
  }
  if (pattern.text[pattern.matched] == byte) ++pattern.matched;
}

StopMatcher::Step StopMatcher::push(std::string_view bytes) {
  std::size_t open = 0;  // bytes at the end that may be the beginning of a string
  for (const char byte : bytes) {
    held_ += byte;
    std::size_t complete = 0;
    open = 0;
    for (Pattern& pattern : patterns_) {
      advance(pattern, byte);
      open = std::max(open, pattern.matched);
      if (pattern.matched == pattern.text.size()) complete = std::max(complete, pattern.matched);
    }
    if (complete > 0) {
      held_.resize(held_.size() - complete);
      return {flush(), true};
    }
  }
  if (bytes.empty()) return {};
  Step step{held_.substr(0, held_.size() - open), false};
  held_.erase(0, step.text.size());
  return step;
}

std::string StopMatcher::flush() {
  return std::exchange(held_, {});
}

}  // namespace qgen
