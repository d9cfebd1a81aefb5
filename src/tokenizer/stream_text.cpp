#include "qgen/tokenizer/stream_text.h"

#include <utility>

#include "qgen/base/utf8.h"

namespace qgen {

std::string StreamText::push(std::string_view bytes) {
  std::string text = std::exchange(held_, {});
  text += bytes;
  const std::size_t complete = text.size() - incomplete_utf8_suffix(text);
  held_ = text.substr(complete);
  text.resize(complete);
  return text;
}

std::string StreamText::flush() {
  return std::exchange(held_, {});
}

}  // namespace qgen
