#include "engine/gguf_vocabulary.h"

#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <utility>

#include "qgen/base/text.h"
#include "qgen/base/utf8.h"

namespace qgen {
namespace {

constexpr std::string_view kModel = "tokenizer.ggml.model", kSplit = "tokenizer.ggml.pre",
                           kTokens = "tokenizer.ggml.tokens", kTypes = "tokenizer.ggml.token_type",
                           kMerges = "tokenizer.ggml.merges";
constexpr std::int64_t kMostTokens = std::numeric_limits<TokenId>::max();

enum TokenType : std::int64_t {
  normal = 1,
  unknown = 2,
  control = 3,
  user_defined = 4,
  unused = 5,
  byte = 6
};

constexpr std::array<std::string_view, 5> kEndTokens{"<|endoftext|>", "<|im_end|>", "<|eot_id|>",
                                                     "<|eom_id|>", "<|end_of_text|>"};

class VocabularyReader {
 public:
  explicit VocabularyReader(const GgufMetadata& metadata) : metadata_(metadata) {}

  VocabularyParts read() {
    check_model();
    read_split();
    read_pieces();
    read_merges();
    read_control_ids();
    parts_.chat_template = metadata_.text("tokenizer.chat_template").value_or("");
    return std::move(parts_);
  }

 private:
  void check_model() const {
    const std::optional<std::string_view> model = metadata_.text(kModel);
    if (!model) metadata_.fail(kModel, "missing");
    if (*model == "gpt2") return;
    if (*model == "none" || *model == "no_vocab") {
      metadata_.fail(kModel, in_quotes(*model) + ": the file has no tokenizer", ErrorKind::unsupported);
    }
    const std::string kind = *model == "llama" ? " (SentencePiece)" : "";
    metadata_.fail(kModel, in_quotes(*model) + kind + " is not supported, only byte-level BPE (\"gpt2\") is",
                   ErrorKind::unsupported);
  }

  /// Files from before the key existed are read where the architecture leaves no doubt.
  void read_split() {
    const std::string_view architecture = metadata_.text("general.architecture").value_or("");
    const std::string_view implied = architecture.starts_with("qwen") ? "qwen2" : "";
    parts_.split = metadata_.text(kSplit).value_or(implied);
    if (parts_.split.empty()) metadata_.fail(kSplit, "missing, so nothing says how text is split");
  }

  void read_pieces() {
    const auto tokens = metadata_.texts(kTokens);
    if (!tokens) metadata_.fail(kTokens, "missing");
    if (tokens->size() > static_cast<std::size_t>(kMostTokens)) metadata_.fail(kTokens, "too many tokens");
    count_ = std::ssize(*tokens);
    const auto types = metadata_.integers(kTypes);
    if (types) check_length(kTypes, types->size());
    if (const GgufValue* scores = metadata_.find("tokenizer.ggml.scores")) {
      check_length("tokenizer.ggml.scores", scores->count);
    }
    parts_.pieces.reserve(tokens->size());
    for (std::size_t id = 0; id < tokens->size(); ++id) {
      add_piece(static_cast<TokenId>(id), (*tokens)[id], types ? (*types)[id] : std::int64_t{normal});
    }
  }

  void check_length(std::string_view key, std::uint64_t found) const {
    if (found == static_cast<std::uint64_t>(count_)) return;
    metadata_.fail(key, std::to_string(count_) + " entries expected (" + std::string(kTokens) + "), " +
                            std::to_string(found) + " found");
  }

  void add_piece(TokenId id, std::string_view text, std::int64_t type) {
    if (type < normal || type > byte) {
      metadata_.fail(kTypes,
                     "type " + std::to_string(type) + " of token " + std::to_string(id) + " is not known");
    }
    if (type == unused) return;
    const bool is_control = type == control || type == unknown;
    if (is_control && std::ranges::find(kEndTokens, text) != kEndTokens.end()) parts_.end_ids.push_back(id);
    parts_.pieces.push_back({id, {std::string(text), is_control, is_control || type == user_defined}});
  }

  void read_merges() {
    const auto merges = metadata_.texts(kMerges);
    if (!merges) metadata_.fail(kMerges, "missing");
    parts_.merges.reserve(merges->size());
    for (const std::string_view merge : *merges) {
      const std::size_t space = merge.find(' ', 1);
      if (space == std::string_view::npos || space + 1 == merge.size()) {
        metadata_.fail(kMerges, "two pieces with a space between expected, " + in_quotes(merge) + " found");
      }
      parts_.merges.emplace_back(merge.substr(0, space), merge.substr(space + 1));
    }
  }

  [[nodiscard]] std::optional<TokenId> token_id(std::string_view name) const {
    const std::string key = "tokenizer.ggml." + std::string(name);
    const auto id = metadata_.integer(key, std::numeric_limits<std::int64_t>::min(),
                                      std::numeric_limits<std::int64_t>::max());
    if (!id) return std::nullopt;
    if (*id < 0 || *id >= count_) {
      metadata_.fail(key, "id " + std::to_string(*id) + " out of range 0.." + std::to_string(count_ - 1));
    }
    return static_cast<TokenId>(*id);
  }

  void read_control_ids() {
    parts_.bos = token_id("bos_token_id");
    parts_.eos = token_id("eos_token_id");
    for (const char* name : {"eot_token_id", "eom_token_id"}) {
      if (const auto id = token_id(name)) parts_.end_ids.push_back(*id);
    }
    constexpr std::array<std::string_view, 4> kWithStart{"llama-bpe", "llama-v3", "llama3", "tekken"};
    const auto stated = metadata_.boolean("tokenizer.ggml.add_bos_token");
    parts_.add_bos = stated.value_or(std::ranges::find(kWithStart, parts_.split) != kWithStart.end());
    parts_.add_eos = metadata_.boolean("tokenizer.ggml.add_eos_token").value_or(false);
    if (stated.value_or(false) && !parts_.bos) {
      metadata_.fail("tokenizer.ggml.bos_token_id", "missing, tokenizer.ggml.add_bos_token needs it");
    }
    if (parts_.add_eos && !parts_.eos) {
      metadata_.fail("tokenizer.ggml.eos_token_id", "missing, tokenizer.ggml.add_eos_token needs it");
    }
  }

  const GgufMetadata& metadata_;
  VocabularyParts parts_;
  std::int64_t count_ = 0;
};

}  // namespace

VocabularyParts read_gguf_vocabulary(const GgufMetadata& metadata) {
  return VocabularyReader(metadata).read();
}

}  // namespace qgen
