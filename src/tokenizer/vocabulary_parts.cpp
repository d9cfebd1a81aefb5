#include "tokenizer/vocabulary_parts.h"

#include <algorithm>
#include <array>
#include <map>
#include <unordered_set>
#include <vector>

#include "qgen/base/error.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"
#include "tokenizer/byte_alphabet.h"

namespace qgen {
namespace {

/// What a name in tokenizer.ggml.pre stands for in the tokenizer.json from which such files are made.
struct NamedSplit {
  std::string_view name;
  SplitRule rule;
  bool digits_first = false;  // numeric characters are set apart before the rule
  bool nfc = false;
  bool ignore_merges = false;
};

constexpr std::array<NamedSplit, 17> kSplits{{
    {.name = "gpt-2", .rule = SplitRule::gpt2},
    {.name = "gpt2", .rule = SplitRule::gpt2},
    {.name = "phi-2", .rule = SplitRule::gpt2},
    {.name = "mpt", .rule = SplitRule::gpt2, .nfc = true},
    {.name = "olmo", .rule = SplitRule::gpt2, .nfc = true},
    {.name = "smollm", .rule = SplitRule::gpt2, .digits_first = true},
    {.name = "starcoder", .rule = SplitRule::gpt2, .digits_first = true},
    {.name = "refact", .rule = SplitRule::gpt2, .digits_first = true},
    {.name = "command-r", .rule = SplitRule::gpt2, .digits_first = true, .nfc = true},
    {.name = "qwen2", .rule = SplitRule::qwen2, .nfc = true},
    {.name = "deepseek-r1-qwen", .rule = SplitRule::qwen2, .nfc = true},
    {.name = "llama-bpe", .rule = SplitRule::llama3, .ignore_merges = true},
    {.name = "llama-v3", .rule = SplitRule::llama3, .ignore_merges = true},
    {.name = "llama3", .rule = SplitRule::llama3, .ignore_merges = true},
    {.name = "smaug-bpe", .rule = SplitRule::llama3},
    {.name = "tekken", .rule = SplitRule::tekken, .ignore_merges = true},
    {.name = "gpt-4o", .rule = SplitRule::o200k},
}};

[[noreturn]] void fail(std::string_view source, const std::string& reason) {
  throw Error(ErrorKind::file, escape_control(source) + ": " + reason);
}

std::string split_names() {
  std::vector<std::string_view> names;
  for (const NamedSplit& known : kSplits) names.push_back(known.name);
  return join(names);
}

const NamedSplit& split_named(std::string_view name, std::string_view source) {
  const auto found = std::ranges::find(kSplits, name, &NamedSplit::name);
  if (found != kSplits.end()) return *found;
  throw Error(ErrorKind::unsupported, escape_control(source) + ": the split rule " + in_quotes(name) +
                                          " is not known; those known are " + split_names());
}

/// The name for which split_named() gives back what `spec` says.
std::string_view name_of_split(const TokenizerSpec& spec, std::string_view source) {
  const auto rules_of = [](const NamedSplit& split) {
    std::vector<SplitRule> rules{split.rule};
    if (split.digits_first) rules.insert(rules.begin(), SplitRule::each_digit);
    return rules;
  };
  const bool has_prefix = spec.split.add_prefix_space || spec.split.split_again;
  const auto found = std::ranges::find_if(kSplits, [&](const NamedSplit& split) {
    return rules_of(split) == spec.split.rules && split.nfc == spec.nfc &&
           split.ignore_merges == spec.model.ignore_merges;
  });
  if (found == kSplits.end() || has_prefix) {
    throw Error(ErrorKind::unsupported,
                escape_control(source) + ": its way of splitting text has no name among " + split_names());
  }
  return found->name;
}

/// The one control token that stands before or after each text, if any.
std::optional<TokenId> only_token(const std::vector<TemplateToken>& tokens, std::string_view source) {
  if (tokens.size() > 1) {
    throw Error(ErrorKind::unsupported, escape_control(source) + ": post_processor adds " +
                                            std::to_string(tokens.size()) +
                                            " tokens at one end of a text, at most one is supported here");
  }
  return tokens.empty() ? std::nullopt : std::optional(tokens.front().id);
}

/// Reads the parts of one vocabulary.
class PartsReader {
 public:
  PartsReader(const VocabularyParts& parts, std::string_view source, Spellings& spellings)
      : parts_(parts), source_(source), spellings_(spellings) {}

  TokenizerSpec read() {
    check_pieces();
    TokenizerSpec spec;
    read_split(spec);
    for (const auto& [id, piece] : parts_.pieces) add_piece(id, piece, spec);
    spec.model.merges.reserve(parts_.merges.size());
    for (const auto& [left, right] : parts_.merges) {
      spec.model.merges.emplace_back(spelling(left), spelling(right));
    }
    if (parts_.bos) check_id(*parts_.bos, "start token's");
    if (parts_.add_bos && parts_.bos) spec.front.push_back({"start token", *parts_.bos});
    add_end_ids(spec);
    return spec;
  }

 private:
  void check_pieces() {
    std::unordered_set<std::string_view> texts;
    ids_.reserve(parts_.pieces.size());
    for (const auto& [id, piece] : parts_.pieces) {
      if (id < 0) fail(source_, "the piece " + in_quotes(piece.text) + " has the id " + std::to_string(id));
      if (piece.text.empty()) continue;
      ids_.push_back(id);
      if (!texts.insert(piece.text).second) {
        fail(source_, "the piece " + in_quotes(piece.text) + " occurs twice in the vocabulary");
      }
    }
    std::ranges::sort(ids_);
    const auto twice = std::ranges::adjacent_find(ids_);
    if (twice != ids_.end()) fail(source_, "two pieces have the same id " + std::to_string(*twice));
  }

  void check_id(TokenId id, const std::string& whose) const {
    if (std::ranges::binary_search(ids_, id)) return;
    const TokenId highest = ids_.empty() ? -1 : ids_.back();
    const bool outside = id < 0 || id > highest;
    fail(source_, "the " + whose + " id " + std::to_string(id) +
                      (outside ? " out of range 0.." + std::to_string(highest) : " stands for no piece"));
  }

  void read_split(TokenizerSpec& spec) const {
    const NamedSplit& split = split_named(parts_.split, source_);
    if (split.digits_first) spec.split.rules.push_back(SplitRule::each_digit);
    spec.split.rules.push_back(split.rule);
    spec.nfc = split.nfc;
    spec.model.ignore_merges = split.ignore_merges;
  }

  /// Control tokens stay out of the vocabulary: plain text can then never become one, in no way.
  void add_piece(TokenId id, const VocabularyParts::Piece& piece, TokenizerSpec& spec) {
    if (piece.text.empty()) return;
    const bool added = piece.added || piece.control;
    if (added) {
      AddedToken token{.content = piece.text, .special = piece.control};
      token.id = id;
      spec.added.push_back(std::move(token));
    }
    if (!piece.control) {
      spec.model.vocab.push_back({added ? std::string_view(piece.text) : spelling(piece.text), id});
    }
  }

  void add_end_ids(TokenizerSpec& spec) const {
    if (parts_.eos) {
      check_id(*parts_.eos, "end token's");
      if (parts_.add_eos) spec.back.push_back({"end token", *parts_.eos});
      spec.end_ids.push_back(*parts_.eos);
    }
    for (const TokenId id : parts_.end_ids) {
      check_id(id, "end token's");
      if (std::ranges::find(spec.end_ids, id) == spec.end_ids.end()) spec.end_ids.push_back(id);
    }
  }

  std::string_view spelling(const std::string& text) {
    if (!parts_.raw_bytes) return text;
    std::string& out = spellings_.emplace_back();
    for (const char byte : text) out += byte_alphabet::spelling_of(static_cast<unsigned char>(byte));
    return out;
  }

  const VocabularyParts& parts_;
  std::string_view source_;
  Spellings& spellings_;
  std::vector<TokenId> ids_;  // of pieces with a text, sorted
};

}  // namespace

TokenizerSpec read_vocabulary_parts(const VocabularyParts& parts, std::string_view source,
                                    Spellings& spellings) {
  return PartsReader(parts, source, spellings).read();
}

VocabularyParts make_vocabulary_parts(const TokenizerSpec& spec,
                                      const std::function<std::optional<TokenId>(std::string_view)>& find,
                                      std::string_view source) {
  VocabularyParts parts;
  parts.split = name_of_split(spec, source);
  std::map<TokenId, VocabularyParts::Piece> pieces;
  for (const VocabEntry& entry : spec.model.vocab) pieces[entry.id].text = entry.spelling;
  for (const AddedToken& token : spec.added) {
    if (const auto id = find(token.content)) pieces[*id] = {token.content, token.special, true};
  }
  parts.pieces.assign(pieces.begin(), pieces.end());
  for (const Merge& merge : spec.model.merges) parts.merges.emplace_back(merge);

  const auto front = only_token(spec.front, source), back = only_token(spec.back, source);
  parts.bos = front || spec.bos.empty() ? front : find(spec.bos);
  parts.eos = back || spec.eos.empty() ? back : find(spec.eos);
  parts.add_bos = front || (spec.add_bos && parts.bos);
  parts.add_eos = back || (spec.add_eos && parts.eos);
  return parts;
}

}  // namespace qgen
