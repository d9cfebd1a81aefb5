#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace qgen {

/// Looks for the first of several strings in bytes that arrive piece by piece, and holds back what may be the
/// beginning of one. How the bytes are cut into pieces changes nothing. Linear in the bytes for each string
/// (Knuth, Morris and Pratt 1977).
class StopMatcher {
 public:
  /// Empty strings are ignored.
  explicit StopMatcher(const std::vector<std::string>& strings);

  struct Step {
    std::string text;      ///< bytes that are certain to belong to the text
    bool matched = false;  ///< a string is complete: `text` ends before it
  };
  /// Not to be called again after a match.
  Step push(std::string_view bytes);
  /// What is still held back when no more bytes come.
  std::string flush();

 private:
  struct Pattern {
    std::string text;
    std::vector<std::size_t> border;  ///< border[n]: longest proper prefix of text[0, n) that is its suffix
    std::size_t matched = 0;          ///< how many of its first bytes are the last ones seen
  };
  static void advance(Pattern& pattern, char byte);

  std::vector<Pattern> patterns_;
  std::string held_;
};

}  // namespace qgen
