#include "generate/reply_text.h"

#include <algorithm>

namespace qgen {

ReplyText::ReplyText(const Source& source, const std::vector<std::string>& stop)
    : source_(source), stop_(stop), matcher_(stop) {}

std::string ReplyText::push(TokenId id, bool& stopped) {
  const std::string_view bytes = source_.bytes(id);
  if (source_.is_special(id)) {
    stopped = std::find(stop_.begin(), stop_.end(), bytes) != stop_.end();
    return "";
  }
  const StopMatcher::Step step = matcher_.push(bytes);
  stopped = step.matched;
  return characters_.push(step.text);
}

std::string ReplyText::flush() {
  const std::string whole = characters_.push(matcher_.flush());
  return whole + characters_.flush();
}

}  // namespace qgen
