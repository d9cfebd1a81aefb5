#pragma once

#include <optional>
#include <string>

#include "tokenizer/json_field.h"
#include "tokenizer/spec.h"

namespace qgen {

/// A token as tokenizer_config.json writes it: its spelling, or an object with its flags. Nothing for null
/// and for a missing key. Flags that are not written are false, except that tokens that are not special are
/// normalised.
std::optional<AddedToken> read_config_token(const JsonField& field, bool special);

/// The chat template of tokenizer_config.json: a text, or among several named ones the one named "default".
/// Empty where there is none.
std::string read_chat_template(const JsonField& field);

}  // namespace qgen
