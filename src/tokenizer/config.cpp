#include "tokenizer/config.h"

namespace qgen {

std::optional<AddedToken> read_config_token(const JsonField& field, bool special) {
  if (!field.present()) return std::nullopt;
  AddedToken token;
  token.special = special;
  if (field.value()->as_string() != nullptr) {
    token.content = field.string();
    token.normalized = !special;
    return token;
  }
  token.content = field["content"].string();
  token.special = special || field["special"].boolean_or(false);
  token.single_word = field["single_word"].boolean_or(false);
  token.lstrip = field["lstrip"].boolean_or(false);
  token.rstrip = field["rstrip"].boolean_or(false);
  token.normalized = field["normalized"].boolean_or(!token.special);
  return token;
}

std::string read_chat_template(const JsonField& field) {
  if (!field.present()) return {};
  if (field.value()->as_string() != nullptr) return field.string();
  for (std::size_t i = 0; i < field.array().size(); ++i) {
    const JsonField named = field.element(i);
    if (named["name"].string() == "default") return named["template"].string();
  }
  return {};
}

}  // namespace qgen
