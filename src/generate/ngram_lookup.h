#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "qgen/base/bytes.h"

namespace qgen {

/// What followed the last tokens of a text when they last stood there: a guess at what comes next. An index
/// of n-grams grows with the text, so that adding a token and guessing take the same short time however long
/// the text is.
class NgramLookup {
 public:
  static constexpr std::size_t kShortest = 2;  ///< tokens that must match
  static constexpr std::size_t kLongest = 8;   ///< longer matches are found as matches of this many

  void add(TokenId id);

  /// Replaces `guess` by what followed the latest earlier place of the longest n-gram that ends the text, at
  /// most `most` tokens and no more than have matched; empty where there is none. Texts that repeat a few
  /// tokens over and over are continued that way.
  void find(std::size_t most, std::vector<TokenId>& guess) const;

  /// Bytes of memory held: at most a few megabytes and four bytes a token.
  [[nodiscard]] std::size_t bytes() const noexcept;

 private:
  void grow();
  void index_end(std::size_t end);
  [[nodiscard]] std::size_t match_length(std::size_t end, std::size_t most) const;
  [[nodiscard]] std::size_t latest_match() const;

  std::vector<TokenId> text_;
  /// For the hash of an n-gram where it last ended, 0: nowhere. One entry each, the later one stays: what was
  /// overwritten is not guessed, and every find is compared with the text.
  std::vector<std::uint32_t> ends_;
};

}  // namespace qgen
