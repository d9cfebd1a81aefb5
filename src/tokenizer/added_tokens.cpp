#include "tokenizer/added_tokens.h"

#include <algorithm>
#include <utility>

#include "tokenizer/characters.h"

namespace qgen {
namespace {

/// Where the white space before `i` begins, but not before `lowest`.
std::size_t skip_spaces_left(std::string_view text, std::size_t i, std::size_t lowest) noexcept {
  while (i > lowest) {
    const unicode::Character c = unicode::character_before(text, i);
    if (!c.is(unicode::space)) break;
    i -= c.length;
  }
  return std::max(i, lowest);
}

/// Where white space ends, remembering the last run: tokens that are white space themselves ask for the same
/// run again and again.
class SpaceSkipper {
 public:
  std::size_t operator()(std::string_view text, std::size_t i) noexcept {
    if (i >= begin_ && i <= end_) return end_;
    begin_ = i;
    while (i < text.size()) {
      const unicode::Character c = unicode::character_at(text, i);
      if (!c.is(unicode::space)) break;
      i += c.length;
    }
    return end_ = i;
  }

 private:
  std::size_t begin_ = 1;
  std::size_t end_ = 0;
};

bool stands_alone(std::string_view text, std::size_t begin, std::size_t end) noexcept {
  return (begin == 0 || !unicode::character_before(text, begin).is(unicode::word)) &&
         (end == text.size() || !unicode::character_at(text, end).is(unicode::word));
}

}  // namespace

void AddedTokenFinder::add(std::string_view spelling, TokenId id, const AddedToken& token, bool special) {
  if (nodes_.empty()) nodes_.push_back(-1);
  std::uint32_t node = 0;
  for (const char c : spelling) {
    const auto byte = static_cast<unsigned char>(c);
    const auto fresh = static_cast<std::uint32_t>(nodes_.size());
    const auto [edge, inserted] = edges_.try_emplace(std::uint64_t{node} << 8 | byte, fresh);
    if (inserted) nodes_.push_back(-1);
    node = edge->second;
  }
  if (nodes_[node] >= 0) return;
  begins_[static_cast<unsigned char>(spelling.front())] = true;
  nodes_[node] = static_cast<std::int32_t>(tokens_.size());
  tokens_.push_back({id, token.single_word, token.lstrip, token.rstrip, special});
}

AddedTokenFinder::Found AddedTokenFinder::longest_at(std::string_view text,
                                                     std::size_t begin) const noexcept {
  Found found;
  std::uint32_t node = 0;
  for (std::size_t i = begin; i < text.size(); ++i) {
    const auto edge = edges_.find(std::uint64_t{node} << 8 | static_cast<unsigned char>(text[i]));
    if (edge == edges_.end()) break;
    node = edge->second;
    if (nodes_[node] >= 0) found = {i + 1, nodes_[node]};
  }
  return found;
}

std::vector<TextPart> AddedTokenFinder::split(std::string_view text, bool parse_special) const {
  std::vector<TextPart> parts;
  // Where the last part ends. It can lie before `i`, or behind it where rstrip took spaces that belong to the
  // next token; the reference then gives both tokens, and the same is done here.
  std::size_t taken = 0;
  SpaceSkipper skip_spaces_right;
  for (std::size_t i = 0; i < text.size();) {
    const Found found = begins_[static_cast<unsigned char>(text[i])] ? longest_at(text, i) : Found{};
    if (found.token < 0) {
      ++i;
      continue;
    }
    std::size_t begin = std::exchange(i, found.end);
    std::size_t end = found.end;
    const Token& token = tokens_[static_cast<std::size_t>(found.token)];
    if ((token.special && !parse_special) || (token.single_word && !stands_alone(text, begin, end))) continue;
    if (token.lstrip) begin = skip_spaces_left(text, begin, taken);
    if (token.rstrip) end = skip_spaces_right(text, end);
    if (taken < begin) parts.push_back({text.substr(taken, begin - taken), -1});
    parts.push_back({text.substr(std::min(begin, end), end - std::min(begin, end)), token.id});
    taken = end;
  }
  if (taken < text.size()) parts.push_back({text.substr(taken), -1});
  return parts;
}

}  // namespace qgen
