#include <algorithm>
#include <array>
#include <string>

#include "cli/quantize/source.h"
#include "qgen/base/error.h"
#include "qgen/base/utf8.h"
#include "qgen/tokenizer/tokenizer.h"

namespace qgen::cli {
namespace {

/// Values of tokenizer.ggml.token_type.
enum TokenType : std::int32_t { normal = 1, control = 3, user_defined = 4, unused = 5 };

/// A file names up to three tokens that end a text.
void add_end_ids(std::vector<TokenId> ids, GgufHeader& header) {
  constexpr std::array<std::string_view, 3> kKeys{
      "tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.eom_token_id"};
  for (std::size_t i = 0; i < std::min(ids.size(), kKeys.size()); ++i) {
    header.add(kKeys[i], static_cast<std::uint32_t>(ids[i]));
  }
}

std::vector<TokenId> all_end_ids(const VocabularyParts& parts, const std::vector<TokenId>& further) {
  std::vector<TokenId> ids;
  const auto append = [&ids](TokenId id) {
    if (std::ranges::find(ids, id) == ids.end()) ids.push_back(id);
  };
  if (parts.eos) append(*parts.eos);
  for (const TokenId id : parts.end_ids) append(id);
  for (const TokenId id : further) append(id);
  return ids;
}

}  // namespace

void add_vocabulary(const std::filesystem::path& folder, std::int64_t rows,
                    const std::vector<TokenId>& end_ids, GgufHeader& header) {
  const VocabularyParts parts = Tokenizer::parts_of_folder(folder);
  std::vector<std::string> tokens(static_cast<std::size_t>(rows));
  std::vector<std::int32_t> types(tokens.size(), unused);
  for (std::size_t id = 0; id < tokens.size(); ++id) tokens[id] = "[PAD" + std::to_string(id) + "]";
  for (const auto& [id, piece] : parts.pieces) {
    if (id >= rows) {
      throw Error(ErrorKind::file, escape_control(folder.string()) + ": the tokenizer has the id " +
                                       std::to_string(id) + ", but the embedding only " +
                                       std::to_string(rows) + " rows");
    }
    tokens[static_cast<std::size_t>(id)] = piece.text;
    types[static_cast<std::size_t>(id)] = piece.control ? control : piece.added ? user_defined : normal;
  }
  std::vector<std::string> merges;
  merges.reserve(parts.merges.size());
  for (const auto& [left, right] : parts.merges) merges.push_back(left + " " + right);

  header.add("tokenizer.ggml.model", "gpt2");
  header.add("tokenizer.ggml.pre", parts.split);
  header.add("tokenizer.ggml.tokens", tokens);
  header.add("tokenizer.ggml.token_type", types);
  header.add("tokenizer.ggml.merges", merges);
  if (parts.bos) header.add("tokenizer.ggml.bos_token_id", static_cast<std::uint32_t>(*parts.bos));
  add_end_ids(all_end_ids(parts, end_ids), header);
  header.add("tokenizer.ggml.add_bos_token", parts.add_bos);
  if (parts.add_eos) header.add("tokenizer.ggml.add_eos_token", true);
  if (!parts.chat_template.empty()) header.add("tokenizer.chat_template", parts.chat_template);
}

}  // namespace qgen::cli
