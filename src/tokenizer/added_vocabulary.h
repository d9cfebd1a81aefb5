#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "qgen/base/bytes.h"
#include "tokenizer/added_tokens.h"
#include "tokenizer/bpe.h"
#include "tokenizer/spec.h"

namespace qgen {

/// The added tokens of a tokenizer and their ids. As in the reference, a token of tokenizer.json that the
/// vocabulary knows has its id; the others are numbered from the size of the vocabulary on, whatever ids the
/// file gives them.
class AddedVocabulary {
 public:
  struct Token {
    std::string spelling;  ///< normalised where the token is
    bool special;
  };

  /// Throws Error{file} beginning with `source` if there is no id left.
  AddedVocabulary(const std::vector<AddedToken>& tokens, const Bpe& bpe, bool nfc, std::string_view source);

  /// Finds the tokens that are looked for in the text as it is, and in the normalised text.
  [[nodiscard]] const AddedTokenFinder& in_raw_text() const noexcept { return raw_; }
  [[nodiscard]] const AddedTokenFinder& in_normalized_text() const noexcept { return normalized_; }

  [[nodiscard]] const std::map<TokenId, Token>& tokens() const noexcept { return tokens_; }
  [[nodiscard]] std::optional<TokenId> find(const std::string& content) const;

 private:
  std::unordered_map<std::string, TokenId> ids_;
  std::map<TokenId, Token> tokens_;
  AddedTokenFinder raw_;
  AddedTokenFinder normalized_;
};

}  // namespace qgen
