#pragma once

#include <string>
#include <vector>

#include "generate/source.h"
#include "generate/stop_matcher.h"
#include "qgen/tokenizer/stream_text.h"

namespace qgen {

/// Turns generated tokens into text that can be shown: without control tokens, up to the first stop string,
/// in whole characters.
class ReplyText {
 public:
  /// Both must outlive this.
  ReplyText(const Source& source, const std::vector<std::string>& stop);

  /// Returns the text that is certain now. Sets `stopped` where the token completes a stop string.
  std::string push(TokenId id, bool& stopped);
  /// What is left at the end, complete characters or not.
  std::string flush();

 private:
  const Source& source_;
  const std::vector<std::string>& stop_;
  StopMatcher matcher_;
  StreamText characters_;
};

}  // namespace qgen
