#include "cli/bench/workload.h"

#include <algorithm>
#include <string_view>

#include "qgen/base/error.h"

namespace qgen::cli {
namespace {

constexpr std::string_view kPassage =
    "The miller had three sons, and when the harvest was over he sent them out to see what the world was "
    "like. "
    "The eldest took the road through the forest, the second followed the river down to the sea, and the "
    "youngest, who had no better idea, climbed the hill behind the mill to ask the wind. \"What do you want "
    "to "
    "know?\" said the wind, for it was a slow afternoon with little to do.\n\n";

}  // namespace

std::string workload_text(const Tokenizer& tokenizer, std::int64_t tokens) {
  const auto per_passage = static_cast<std::int64_t>(tokenizer.encode(kPassage).size());
  const std::int64_t passages = tokens / std::max<std::int64_t>(per_passage, 1) + 2;
  std::string text;
  for (std::int64_t i = 0; i < passages; ++i) text += kPassage;
  std::vector<TokenId> ids = tokenizer.encode(text);
  ids.resize(std::min(ids.size(), static_cast<std::size_t>(tokens) + 1));
  return tokenizer.decode(ids, true);
}

std::vector<TokenId> workload_tokens(const Tokenizer& tokenizer, const std::string& text,
                                     std::int64_t tokens) {
  std::vector<TokenId> ids = tokenizer.encode(text);
  if (ids.empty()) throw Error(ErrorKind::file, "--bench: the tokenizer gives no tokens for an English text");
  // A cut text can encode to a token less at its end.
  const auto count = static_cast<std::size_t>(std::max<std::int64_t>(tokens, 1));
  for (std::size_t i = 0; ids.size() < count; ++i) ids.push_back(ids[i]);
  ids.resize(count);
  return ids;
}

}  // namespace qgen::cli
