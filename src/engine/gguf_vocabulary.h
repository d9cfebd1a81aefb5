#pragma once

#include "qgen/tokenizer/tokenizer.h"
#include "qgen/weights/gguf.h"

namespace qgen {

/// What the tokenizer keys of a GGUF file say. Only byte-level BPE (tokenizer.ggml.model "gpt2"); other kinds
/// are Error{unsupported} by name, and lists that do not fit together Error{file} by key.
///
/// What a file leaves unsaid: without tokenizer.ggml.add_bos_token a start token is added for the split rules
/// of Llama 3 and Tekken, and for no other. Control tokens by which the published families end a turn or a
/// text (<|im_end|>, <|eot_id|>, ...) end it here too, since a file has room for one end token only. Merges
/// may be an empty list, which makes a text the pieces of its bytes; the key must be there. Pieces marked
/// unused stand for nothing.
VocabularyParts read_gguf_vocabulary(const GgufMetadata& metadata);

}  // namespace qgen
