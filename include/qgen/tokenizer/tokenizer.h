#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qgen/base/bytes.h"

namespace qgen {

/// A byte-level BPE vocabulary as GGUF files and pickles have it.
struct VocabularyParts {
  /// `added`: recognised in a text before anything is merged; `control`: that, and a control token.
  struct Piece {
    std::string text;
    bool control = false, added = false;
  };
  /// Ids may have gaps and come in any order. A piece without text stands for nothing.
  std::vector<std::pair<TokenId, Piece>> pieces;
  std::vector<std::pair<std::string, std::string>> merges;  ///< in order of rank
  /// Texts and merges are bytes themselves rather than in GPT-2's byte alphabet. Added tokens are themselves
  /// either way.
  bool raw_bytes = false;
  std::string split;  ///< name of the split rule, as tokenizer.ggml.pre has it: "gpt-2", "qwen2", ...
  std::optional<TokenId> bos, eos;
  std::vector<TokenId> end_ids;  ///< further ids that end a text
  bool add_bos = false, add_eos = false;
  std::string chat_template;
};

/// How to read one text.
struct EncodeOptions {
  /// Recognise added tokens marked special (control tokens such as <|im_end|>). Off, their spelling is plain
  /// text, as with encode_special_tokens in Hugging Face tokenizers; added tokens that are not special are
  /// always recognised.
  bool parse_special = false;
  /// Add what the tokenizer's post-processor adds around a text: a start token, for the families that have
  /// one (and for the few that have it, an end token), as add_special_tokens does in Hugging Face tokenizers.
  bool add_bos = true;
};

/// Byte-level BPE exactly as Hugging Face tokenizers computes it from tokenizer.json (version 0.23 is the
/// reference). Immutable after loading; safe to share between threads.
///
/// The pipeline is the one that tokenizer.json declares, whatever class tokenizer_config.json names: added
/// tokens, normalizer (none, NFC), pre_tokenizer (Split by a known pattern, Digits, ByteLevel), BPE,
/// post_processor (ByteLevel, one TemplateProcessing). Anything else is refused by name. Its truncation,
/// padding and decoder sections are not consulted: a byte-level vocabulary decodes in one way only.
class Tokenizer {
 public:
  /// Reads the tokenizer of a model folder: tokenizer.json, else vocab.json + merges.txt with the split rule
  /// that tokenizer_config.json's tokenizer_class implies (GPT2Tokenizer, Qwen2Tokenizer).
  /// tokenizer_config.json supplies the end token and the chat template; chat_template.jinja, if there is
  /// one, goes before it. Whether a start token is added is for tokenizer.json's post_processor alone to say;
  /// only a folder without tokenizer.json goes by add_bos_token and add_eos_token (as transformers 5 does).
  /// Throws Error{file} for damaged files, Error{unsupported} naming the part for kinds that are not
  /// byte-level BPE.
  static Tokenizer from_folder(const std::filesystem::path& folder);

  /// The same from file contents; `tokenizer_config_json` may be empty. `source` is the name for messages.
  static Tokenizer from_json(std::string_view tokenizer_json, std::string_view tokenizer_config_json,
                             std::string_view source);

  /// The same from plain data. The name of the split rule also says what files of that name leave unsaid: NFC
  /// (qwen2 and a few more) and whether a whole piece of the vocabulary is taken without merging (llama-bpe,
  /// tekken). Without merges a text becomes the pieces of its bytes. Throws Error{unsupported} listing the
  /// names for one that is not known; Error{file} for ids and texts that occur twice, ids that have no piece
  /// and merges that name what the vocabulary lacks or a control token.
  static Tokenizer from_parts(const VocabularyParts& parts, std::string_view source);

  /// The plain data for which from_parts() gives what from_folder() gives. How added tokens treat the white
  /// space around them has no place there. Throws Error as from_folder does, and Error{unsupported} for a way
  /// of splitting that has no name and for texts that begin or end with several control tokens.
  static VocabularyParts parts_of_folder(const std::filesystem::path& folder);

  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;
  Tokenizer& operator=(Tokenizer&&) noexcept;

  /// Ids of `text`. Any bytes are accepted: those that are not UTF-8 are kept byte for byte and split like a
  /// symbol (neither letter, digit nor space). Takes O(n log n) time and no recursion.
  [[nodiscard]] std::vector<TokenId> encode(std::string_view text, const EncodeOptions& options = {}) const;

  /// The bytes that `id` stands for: those that its spelling has in the byte alphabet (visible ASCII stands
  /// for itself), or the spelling itself if it has a character outside of that. Empty for an id outside the
  /// vocabulary (padded rows of the model's matrix).
  [[nodiscard]] std::string_view bytes(TokenId id) const noexcept;

  /// All bytes of `ids`; with skip_special, added tokens marked special are left out.
  [[nodiscard]] std::string decode(std::span<const TokenId> ids, bool skip_special = false) const;

  [[nodiscard]] bool is_special(TokenId id) const noexcept;  ///< an added token marked special
  [[nodiscard]] bool is_known(TokenId id) const noexcept;    ///< a piece or an added token
  /// One more than the highest known id.
  [[nodiscard]] std::int64_t size() const noexcept;
  /// The id of an added token, or of a piece by its vocabulary spelling.
  [[nodiscard]] std::optional<TokenId> find(std::string_view spelling) const;
  /// Start token: only where encode() adds it.
  [[nodiscard]] std::optional<TokenId> bos() const noexcept;
  /// End tokens that the tokenizer's files name (eos_token, and VocabularyParts::end_ids).
  [[nodiscard]] const std::vector<TokenId>& end_ids() const noexcept;
  /// The chat template that the tokenizer's files bring; empty where there is none.
  [[nodiscard]] const std::string& chat_template() const noexcept;

 private:
  struct Impl;
  explicit Tokenizer(std::unique_ptr<const Impl> impl);
  std::unique_ptr<const Impl> impl_;
};

}  // namespace qgen
