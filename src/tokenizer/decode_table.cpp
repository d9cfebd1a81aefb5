#include "tokenizer/decode_table.h"

#include <algorithm>
#include <optional>

#include "qgen/base/error.h"
#include "qgen/base/utf8.h"
#include "tokenizer/byte_alphabet.h"

namespace qgen {

DecodeTable::DecodeTable(const std::vector<VocabEntry>& vocab, const AddedVocabulary& added,
                         std::string_view source) {
  std::vector<VocabEntry> pieces = vocab;
  std::sort(pieces.begin(), pieces.end(),
            [](const VocabEntry& a, const VocabEntry& b) { return a.id < b.id; });
  const auto twice = std::adjacent_find(
      pieces.begin(), pieces.end(), [](const VocabEntry& a, const VocabEntry& b) { return a.id == b.id; });
  if (twice != pieces.end()) {
    throw Error(ErrorKind::file, escape_control(source) + ": the pieces \"" + shorten(twice->spelling) +
                                     "\" and \"" + shorten((twice + 1)->spelling) + "\" have the same id " +
                                     std::to_string(twice->id));
  }
  entries_.reserve(pieces.size() + added.tokens().size());
  auto token = added.tokens().begin();
  const auto append_added = [&] {
    append(token->first, token->second.spelling, token->second.special);
    ++token;
  };
  for (const VocabEntry& piece : pieces) {
    while (token != added.tokens().end() && token->first < piece.id) append_added();
    if (token == added.tokens().end() || token->first != piece.id) append(piece.id, piece.spelling, false);
  }
  while (token != added.tokens().end()) append_added();
}

/// A spelling with a character outside the byte alphabet stands for itself, as in the reference's decoder.
void DecodeTable::append(TokenId id, std::string_view spelling, bool special) {
  const std::optional<std::string> decoded = byte_alphabet::bytes_of(spelling);
  const std::string_view bytes = decoded ? std::string_view(*decoded) : spelling;
  entries_.push_back({id, special, bytes_.size(), bytes.size()});
  bytes_ += bytes;
}

const DecodeTable::Entry* DecodeTable::find(TokenId id) const noexcept {
  // Without gaps in the vocabulary an entry stands at its id.
  const auto index = static_cast<std::size_t>(static_cast<std::uint32_t>(id));
  if (index < entries_.size() && entries_[index].id == id) return &entries_[index];
  const auto found = std::lower_bound(entries_.begin(), entries_.end(), id,
                                      [](const Entry& entry, TokenId wanted) { return entry.id < wanted; });
  return found == entries_.end() || found->id != id ? nullptr : &*found;
}

}  // namespace qgen
