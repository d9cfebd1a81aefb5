#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "qgen/tokenizer/tokenizer.h"
#include "tokenizer/spec.h"

namespace qgen {

/// Texts that are not in the parts as a specification needs them.
using Spellings = std::deque<std::string>;

/// Checks `parts` and says what they mean; see Tokenizer::from_parts. The result refers to `parts` and to
/// what is put into `spellings`.
TokenizerSpec read_vocabulary_parts(const VocabularyParts& parts, std::string_view source,
                                    Spellings& spellings);

/// The other way; `find` gives the id of an added token. Leaves chat_template and end_ids empty.
VocabularyParts make_vocabulary_parts(const TokenizerSpec& spec,
                                      const std::function<std::optional<TokenId>(std::string_view)>& find,
                                      std::string_view source);

}  // namespace qgen
