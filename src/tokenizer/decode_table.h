#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/base/bytes.h"
#include "tokenizer/added_vocabulary.h"
#include "tokenizer/spec.h"

namespace qgen {

/// What each id stands for. Its size follows the number of tokens, not the highest id.
class DecodeTable {
 public:
  struct Entry {
    TokenId id;
    bool special;
    std::size_t offset;
    std::size_t length;
  };

  /// Throws Error{file} beginning with `source` if two pieces have one id. An added token hides a piece.
  DecodeTable(const std::vector<VocabEntry>& vocab, const AddedVocabulary& added, std::string_view source);

  /// Nothing for an id that is not known.
  [[nodiscard]] const Entry* find(TokenId id) const noexcept;
  [[nodiscard]] std::string_view bytes(const Entry& entry) const noexcept {
    return std::string_view(bytes_).substr(entry.offset, entry.length);
  }
  /// -1 if there are no tokens.
  [[nodiscard]] TokenId highest_id() const noexcept { return entries_.empty() ? -1 : entries_.back().id; }

 private:
  void append(TokenId id, std::string_view spelling, bool special);

  std::string bytes_;
  std::vector<Entry> entries_;  // by id
};

}  // namespace qgen
