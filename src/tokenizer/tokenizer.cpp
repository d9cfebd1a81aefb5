#include "qgen/tokenizer/tokenizer.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "qgen/base/error.h"
#include "qgen/base/json.h"
#include "qgen/base/mapped_file.h"
#include "qgen/base/utf8.h"
#include "tokenizer/added_vocabulary.h"
#include "tokenizer/bpe.h"
#include "tokenizer/config.h"
#include "tokenizer/decode_table.h"
#include "tokenizer/legacy_files.h"
#include "tokenizer/normalize.h"
#include "tokenizer/piece_cache.h"
#include "tokenizer/split.h"
#include "tokenizer/tokenizer_json.h"
#include "tokenizer/vocabulary_parts.h"

namespace qgen {

struct Tokenizer::Impl {
  Impl(const TokenizerSpec& spec, std::string template_text, std::string_view source);

  [[nodiscard]] std::optional<TokenId> find(std::string_view spelling) const {
    const std::optional<TokenId> id = added.find(std::string(spelling));
    return id ? id : bpe.find(spelling);
  }

  Bpe bpe;
  AddedVocabulary added;
  DecodeTable table;
  bool nfc;
  SplitPlan split;
  std::vector<TokenId> front, back, end_ids;
  std::string chat_template;
};

namespace {

/// Every id that encode() gives must have a row in the model: none may come unchecked from a template.
std::vector<TokenId> known_ids(const std::vector<TemplateToken>& tokens, const DecodeTable& table,
                               std::string_view source) {
  std::vector<TokenId> ids;
  for (const TemplateToken& token : tokens) {
    if (table.find(token.id) == nullptr) {
      throw Error(ErrorKind::file, escape_control(source) + ": post_processor gives the token \"" +
                                       shorten(token.name) + "\" the id " + std::to_string(token.id) +
                                       ", which the vocabulary does not have");
    }
    ids.push_back(token.id);
  }
  return ids;
}

}  // namespace

Tokenizer::Impl::Impl(const TokenizerSpec& spec, std::string template_text, std::string_view source)
    : bpe(spec.model, source),
      added(spec.added, bpe, spec.nfc, source),
      table(spec.model.vocab, added, source),
      nfc(spec.nfc),
      split(spec.split),
      front(known_ids(spec.front, table, source)),
      back(known_ids(spec.back, table, source)),
      end_ids(spec.end_ids),
      chat_template(std::move(template_text)) {
  const std::optional<TokenId> bos = spec.bos.empty() ? std::nullopt : find(spec.bos);
  const std::optional<TokenId> eos = spec.eos.empty() ? std::nullopt : find(spec.eos);
  if (spec.add_bos && bos) front.push_back(*bos);
  if (spec.add_eos && eos) back.push_back(*eos);
  if (eos) end_ids.push_back(*eos);
}

namespace {

/// One call of encode(): the buffers that its steps share.
class Encoding {
 public:
  Encoding(const Bpe& bpe, const SplitPlan& split, std::size_t text_bytes)
      : bpe_(bpe), split_(split), cache_(text_bytes) {}

  std::vector<TokenId> ids;

  /// Appends the ids of normalised text without added tokens.
  void append_text(std::string_view text) {
    for (PieceReader reader(split_.rules, text); !reader.done();) {
      const std::string_view piece = reader.next();
      if (split_.add_prefix_space) {
        append_prefixed(piece);
      } else {
        append_piece(piece);
      }
    }
  }

 private:
  void append_prefixed(std::string_view piece) {
    prefixed_.assign(piece.starts_with(' ') ? "" : " ").append(piece);
    if (!split_.split_again) {
      append_piece(prefixed_);
      return;
    }
    for (std::size_t i = 0; i < prefixed_.size();) {
      const std::size_t end = piece_end(SplitRule::gpt2, prefixed_, i);
      append_piece(std::string_view(prefixed_).substr(i, end - i));
      i = end;
    }
  }

  void append_piece(std::string_view piece) {
    if (const auto known = cache_.find(piece)) {
      ids.insert(ids.end(), known->begin(), known->end());
      return;
    }
    const std::size_t before = ids.size();
    bpe_.encode(piece, workspace_, ids);
    cache_.insert(piece, std::span(ids).subspan(before));
  }

  const Bpe& bpe_;
  const SplitPlan& split_;
  Bpe::Workspace workspace_;
  PieceCache cache_;
  std::string prefixed_;
};

bool is_there(const std::filesystem::path& path) {
  std::error_code error;
  return std::filesystem::exists(path, error);
}

std::string chat_template_file(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / "chat_template.jinja";
  if (!is_there(path)) return {};
  return std::string(as_text(MappedFile(path).bytes()));
}

Json parse_object(std::string_view text, const std::string& source) {
  Json json = parse_json(text, source);
  if (json.as_object() == nullptr) JsonField(&json, "the file", source).fail("is no JSON object");
  return json;
}

/// A JSON file of the folder, which holds an object, or null where there is none.
class OptionalJson {
 public:
  explicit OptionalJson(const std::filesystem::path& path) {
    if (is_there(path)) value_ = parse_object(as_text(MappedFile(path).bytes()), path.string());
  }
  [[nodiscard]] const Json* get() const noexcept { return value_ ? &*value_ : nullptr; }

 private:
  std::optional<Json> value_;
};

TokenizerSpec read_json(const Json& root, std::string_view source, const JsonField& config) {
  TokenizerSpec spec = read_tokenizer_json(root, source);
  if (const auto bos = read_config_token(config["bos_token"], true)) spec.bos = bos->content;
  if (const auto eos = read_config_token(config["eos_token"], true)) spec.eos = eos->content;
  return spec;
}

[[noreturn]] void refuse_folder(const std::filesystem::path& folder) {
  if (is_there(folder / "tokenizer.model")) {
    throw Error(ErrorKind::unsupported,
                escape_control((folder / "tokenizer.model").string()) +
                    ": SentencePiece tokenizers are not supported, a tokenizer.json of a "
                    "byte-level BPE tokenizer was expected");
  }
  throw Error(ErrorKind::file, escape_control(folder.string()) +
                                   ": has no tokenizer.json, and no vocab.json with merges.txt either");
}

/// Calls use(specification, chat template, name for messages) with what the files of a folder say.
template <typename Use>
void read_folder(const std::filesystem::path& folder, const Use& use) {
  const OptionalJson config_file(folder / "tokenizer_config.json");
  const std::string config_name = (folder / "tokenizer_config.json").string();
  const JsonField config(config_file.get(), "", config_name);
  std::string chat_template = chat_template_file(folder);
  if (chat_template.empty()) chat_template = read_chat_template(config["chat_template"]);

  const std::filesystem::path path = folder / "tokenizer.json";
  if (is_there(path)) {
    const Json root = parse_json(as_text(MappedFile(path).bytes()), path.string());
    const TokenizerSpec spec = read_json(root, path.string(), config);
    use(spec, std::move(chat_template), path.string());
    return;
  }
  const OptionalJson vocab(folder / "vocab.json");
  if (vocab.get() == nullptr || !is_there(folder / "merges.txt")) refuse_folder(folder);
  const MappedFile merges(folder / "merges.txt");
  const OptionalJson added_tokens(folder / "added_tokens.json");
  const OptionalJson special_tokens(folder / "special_tokens_map.json");
  const std::string name = folder.string();
  const TokenizerSpec spec = read_legacy_files({vocab.get(), as_text(merges.bytes()), config_file.get(),
                                                added_tokens.get(), special_tokens.get(), name});
  use(spec, std::move(chat_template), name);
}

}  // namespace

Tokenizer Tokenizer::from_folder(const std::filesystem::path& folder) {
  std::unique_ptr<const Impl> impl;
  read_folder(folder, [&](const TokenizerSpec& spec, std::string chat_template, const std::string& source) {
    impl = std::make_unique<const Impl>(spec, std::move(chat_template), source);
  });
  return Tokenizer(std::move(impl));
}

VocabularyParts Tokenizer::parts_of_folder(const std::filesystem::path& folder) {
  VocabularyParts parts;
  read_folder(folder, [&](const TokenizerSpec& spec, std::string chat_template, const std::string& source) {
    const Impl impl(spec, std::move(chat_template), source);
    parts = make_vocabulary_parts(
        spec, [&](std::string_view spelling) { return impl.find(spelling); }, source);
    parts.chat_template = impl.chat_template;
    for (const TokenId id : impl.end_ids) {
      if (id != parts.eos) parts.end_ids.push_back(id);
    }
  });
  return parts;
}

Tokenizer Tokenizer::from_json(std::string_view tokenizer_json, std::string_view tokenizer_config_json,
                               std::string_view source) {
  std::optional<Json> config_root;
  const std::string config_name = std::string(source) + " (configuration)";
  if (!tokenizer_config_json.empty()) config_root = parse_object(tokenizer_config_json, config_name);
  const JsonField config(config_root ? &*config_root : nullptr, "", config_name);
  const Json root = parse_json(tokenizer_json, source);
  const TokenizerSpec spec = read_json(root, source, config);
  return Tokenizer(std::make_unique<const Impl>(spec, read_chat_template(config["chat_template"]), source));
}

Tokenizer Tokenizer::from_parts(const VocabularyParts& parts, std::string_view source) {
  Spellings spellings;
  const TokenizerSpec spec = read_vocabulary_parts(parts, source, spellings);
  return Tokenizer(std::make_unique<const Impl>(spec, parts.chat_template, source));
}

Tokenizer::Tokenizer(std::unique_ptr<const Impl> impl) : impl_(std::move(impl)) {}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;
Tokenizer& Tokenizer::operator=(Tokenizer&&) noexcept = default;

std::vector<TokenId> Tokenizer::encode(std::string_view text, const EncodeOptions& options) const {
  Encoding encoding(impl_->bpe, impl_->split, text.size());
  std::vector<TokenId>& ids = encoding.ids;
  if (options.add_bos) ids = impl_->front;
  std::string buffer;
  for (const TextPart& raw : impl_->added.in_raw_text().split(text, options.parse_special)) {
    if (raw.id >= 0) {
      ids.push_back(raw.id);
      continue;
    }
    const std::string_view normal = impl_->nfc ? unicode::nfc(raw.text, buffer) : raw.text;
    for (const TextPart& part : impl_->added.in_normalized_text().split(normal, options.parse_special)) {
      if (part.id >= 0) {
        ids.push_back(part.id);
      } else {
        encoding.append_text(part.text);
      }
    }
  }
  if (options.add_bos) ids.insert(ids.end(), impl_->back.begin(), impl_->back.end());
  return std::move(ids);
}

std::string_view Tokenizer::bytes(TokenId id) const noexcept {
  const DecodeTable::Entry* entry = impl_->table.find(id);
  return entry == nullptr ? std::string_view() : impl_->table.bytes(*entry);
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special) const {
  std::string text;
  for (const TokenId id : ids) {
    const DecodeTable::Entry* entry = impl_->table.find(id);
    if (entry != nullptr && !(skip_special && entry->special)) text += impl_->table.bytes(*entry);
  }
  return text;
}

bool Tokenizer::is_special(TokenId id) const noexcept {
  const DecodeTable::Entry* entry = impl_->table.find(id);
  return entry != nullptr && entry->special;
}

bool Tokenizer::is_known(TokenId id) const noexcept {
  return impl_->table.find(id) != nullptr;
}

std::int64_t Tokenizer::size() const noexcept {
  return std::int64_t{impl_->table.highest_id()} + 1;
}

std::optional<TokenId> Tokenizer::find(std::string_view spelling) const {
  return impl_->find(spelling);
}

std::optional<TokenId> Tokenizer::bos() const noexcept {
  return impl_->front.empty() ? std::nullopt : std::optional(impl_->front.front());
}

const std::vector<TokenId>& Tokenizer::end_ids() const noexcept {
  return impl_->end_ids;
}

const std::string& Tokenizer::chat_template() const noexcept {
  return impl_->chat_template;
}

}  // namespace qgen
