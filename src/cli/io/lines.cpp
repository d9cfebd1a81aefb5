#include "cli/io/lines.h"

#include <unistd.h>

#include "cli/io/input.h"
#include "qgen/base/utf8.h"

namespace qgen::cli {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 18;

}  // namespace

LineReader::LineReader(const std::string& path)
    : source_(path == "-" ? "stdin" : path),
      file_(path == "-" ? Descriptor(STDIN_FILENO) : open_for_reading(path)) {}

bool LineReader::fill() {
  buffer_.erase(0, at_);
  at_ = 0;
  const std::size_t used = buffer_.size();
  buffer_.resize(used + kChunk);
  const std::size_t count = read_some(file_.get(), source_, buffer_.data() + used, kChunk);
  buffer_.resize(used + count);
  return count > 0;
}

std::optional<std::string_view> LineReader::next() {
  std::size_t searched = at_;
  while (true) {
    const std::size_t newline = buffer_.find('\n', searched);
    if (newline != std::string::npos) {
      const std::string_view line(buffer_.data() + at_, newline - at_);
      at_ = newline + 1;
      ++number_;
      return line;
    }
    searched = buffer_.size() - at_;
    if (!ended_ && fill()) continue;
    ended_ = true;
    if (at_ == buffer_.size()) return std::nullopt;
    const std::string_view line = std::string_view(buffer_).substr(at_);
    at_ = buffer_.size();
    ++number_;
    return line;
  }
}

std::string LineReader::place() const {
  return escape_control(source_) + ", line " + std::to_string(number_);
}

}  // namespace qgen::cli
