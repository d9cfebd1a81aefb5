#pragma once

#include <deque>
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

}  // namespace qgen
