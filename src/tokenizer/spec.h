#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qgen/base/bytes.h"
#include "tokenizer/split.h"

namespace qgen {

/// A piece of the vocabulary in the byte alphabet.
struct VocabEntry {
  std::string_view spelling;
  TokenId id;
};

using Merge = std::pair<std::string_view, std::string_view>;

/// The model part of a tokenizer: pieces, merges in order of rank, and what to do with single bytes that have
/// no piece (nothing, or the unknown token).
struct BpeSpec {
  std::vector<VocabEntry> vocab;
  std::vector<Merge> merges;
  bool ignore_merges = false;  ///< a whole piece that is in the vocabulary is taken as it is
  std::optional<std::string_view> unknown;
  bool fuse_unknown = false;
};

/// A token that is recognised in the text before anything else happens to it.
struct AddedToken {
  std::string content;
  bool single_word = false;     ///< only where no word character touches it
  bool lstrip = false;          ///< takes the white space before it along
  bool rstrip = false;          ///< and after it
  bool normalized = false;      ///< looked for in the normalised text, in normalised spelling
  bool special = false;         ///< a control token
  std::optional<TokenId> id{};  ///< where none is given: the vocabulary's, else the next free one

  bool operator==(const AddedToken&) const = default;
};

/// A token that a template puts around a text, by its own id, which nothing has compared with the vocabulary.
struct TemplateToken {
  std::string name;
  TokenId id;
};

/// Everything that the files say about encoding and decoding. The views in `model` belong to the files' text,
/// which must outlive this.
struct TokenizerSpec {
  BpeSpec model;
  std::vector<AddedToken> added;  ///< in the order in which ids are given to them
  bool nfc = false;
  SplitPlan split;
  std::vector<TemplateToken> front;  ///< put before a text
  std::vector<TemplateToken> back;   ///< and after it
  std::string bos, eos;              ///< spelling of the start and end token; empty: none
  std::vector<TokenId> end_ids;      ///< tokens that end a text, beside eos
  bool add_bos = false;              ///< put bos before a text, beside `front`
  bool add_eos = false;              ///< and eos after it
};

}  // namespace qgen
