#pragma once

#include <string_view>

#include "qgen/base/json.h"
#include "tokenizer/spec.h"

namespace qgen {

/// Reads the pipeline that tokenizer.json declares: normalizer, pre_tokenizer, model, post_processor and
/// added tokens. Truncation and padding are ignored. So is the decoder: a byte-level vocabulary decodes in
/// one way only. Throws Error{file} for what is malformed, Error{unsupported} naming the part for what is not
/// byte-level BPE or a split rule that is not known. The result refers to `root`.
TokenizerSpec read_tokenizer_json(const Json& root, std::string_view source);

/// The vocabulary object of tokenizer.json and vocab.json. The result refers to `vocab`.
std::vector<VocabEntry> read_vocab(const Json* vocab, std::string_view path, std::string_view source);

}  // namespace qgen
