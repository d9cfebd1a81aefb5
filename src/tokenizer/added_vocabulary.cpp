#include "tokenizer/added_vocabulary.h"

#include <limits>
#include <unordered_set>

#include "qgen/base/error.h"
#include "qgen/base/utf8.h"
#include "tokenizer/normalize.h"

namespace qgen {

AddedVocabulary::AddedVocabulary(const std::vector<AddedToken>& tokens, const Bpe& bpe, bool nfc,
                                 std::string_view source) {
  std::map<TokenId, const AddedToken*> by_id;
  std::unordered_set<std::string_view> special;  // stays special even if the token is listed again without it
  std::size_t next = bpe.size();
  for (const AddedToken& token : tokens) {
    if (token.content.empty()) continue;
    std::optional<TokenId> id = token.id ? token.id : find(token.content);
    if (!id) id = bpe.find(token.content);
    if (!id) {
      if (next > static_cast<std::size_t>(std::numeric_limits<TokenId>::max())) {
        throw Error(ErrorKind::file, escape_control(source) + ": no id is left for the added token \"" +
                                         shorten(token.content) + "\"");
      }
      id = static_cast<TokenId>(next++);
    }
    ids_[token.content] = *id;
    by_id[*id] = &token;
    if (token.special) special.insert(token.content);
  }
  std::string buffer;
  for (const auto& [id, token] : by_id) {
    const std::string_view content = token->content;
    const std::string_view spelling = nfc && token->normalized ? unicode::nfc(content, buffer) : content;
    AddedTokenFinder& finder = token->normalized ? normalized_ : raw_;
    finder.add(spelling, id, *token, special.contains(content));
    tokens_.emplace(id, Token{std::string(spelling), special.contains(spelling)});
  }
}

std::optional<TokenId> AddedVocabulary::find(const std::string& content) const {
  const auto found = ids_.find(content);
  return found == ids_.end() ? std::nullopt : std::optional(found->second);
}

}  // namespace qgen
