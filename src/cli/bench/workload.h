#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "qgen/tokenizer/tokenizer.h"

namespace qgen::cli {

/// A plain English text of about `tokens` tokens, never fewer.
[[nodiscard]] std::string workload_text(const Tokenizer& tokenizer, std::int64_t tokens);

/// The first `tokens` ids (at least one) of the text. Throws Error{file} where the tokenizer gives
/// none at all.
[[nodiscard]] std::vector<TokenId> workload_tokens(const Tokenizer& tokenizer, const std::string& text,
                                                   std::int64_t tokens);

}  // namespace qgen::cli
