#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "qgen/base/bytes.h"
#include "tokenizer/spec.h"

namespace qgen {

/// A stretch of a text: an added token, or (id below 0) the text between two of them.
struct TextPart {
  std::string_view text;
  TokenId id;
};

/// Finds added tokens in a text, from left to right, at each place the longest.
class AddedTokenFinder {
 public:
  /// Looks for `spelling` under the flags of `token`; the first of two equal spellings counts.
  void add(std::string_view spelling, TokenId id, const AddedToken& token, bool special);

  [[nodiscard]] bool empty() const noexcept { return nodes_.empty(); }

  /// Cuts `text` into parts. Special tokens are only found with `parse_special`; without it the characters
  /// that spell one still hide shorter tokens among them, as in the reference.
  [[nodiscard]] std::vector<TextPart> split(std::string_view text, bool parse_special) const;

 private:
  struct Found {
    std::size_t end = 0;
    std::int32_t token = -1;
  };
  struct Token {
    TokenId id;
    bool single_word, lstrip, rstrip, special;
  };

  [[nodiscard]] Found longest_at(std::string_view text, std::size_t begin) const noexcept;

  std::array<bool, 256> begins_{};                          // bytes that a token begins with
  std::vector<std::int32_t> nodes_;                         // of a trie: the token that ends there, or -1
  std::unordered_map<std::uint64_t, std::uint32_t> edges_;  // node << 8 | byte -> node
  std::vector<Token> tokens_;
};

}  // namespace qgen
