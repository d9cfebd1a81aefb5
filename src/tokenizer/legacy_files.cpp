#include "tokenizer/legacy_files.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "tokenizer/config.h"
#include "tokenizer/tokenizer_json.h"

namespace qgen {
namespace {

constexpr std::string_view kConfig = "tokenizer_config.json";
constexpr std::string_view kDefaultToken = "<|endoftext|>";
/// Control tokens in the order in which they are added.
constexpr std::array<std::string_view, 7> kNamed{"bos_token", "eos_token", "unk_token", "sep_token",
                                                 "pad_token", "cls_token", "mask_token"};

enum class Class { gpt2, qwen2 };

Class read_class(const JsonField& config) {
  const JsonField field = config["tokenizer_class"];
  if (!field.present()) field.fail("is missing: without tokenizer.json it must say how text is split");
  std::string_view name = field.string();
  if (name.ends_with("Fast")) name.remove_suffix(4);
  if (name == "GPT2Tokenizer") return Class::gpt2;
  if (name == "Qwen2Tokenizer") return Class::qwen2;
  field.unsupported("is \"" + shorten(field.string()) +
                    "\"; without tokenizer.json only GPT2Tokenizer and Qwen2Tokenizer are known");
}

/// The class's own control token where the files do not name one.
bool has_default(Class kind, std::string_view name) {
  if (name == "bos_token") return kind == Class::gpt2;
  if (name == "pad_token") return kind == Class::qwen2;
  return name == "eos_token" || name == "unk_token";
}

std::vector<Merge> read_merges_text(std::string_view text, std::string_view folder) {
  std::vector<Merge> merges;
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t newline = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(std::min(newline + 1, text.size()));
    if (line.ends_with('\r')) line.remove_suffix(1);
    // Only the header is a comment: merges may begin with # too.
    if (++number == 1 && line.starts_with("#version")) continue;
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || line.find(' ', space + 1) != std::string_view::npos) {
      throw Error(ErrorKind::file, escape_control(folder) + "/merges.txt: line " + std::to_string(number) +
                                       " is \"" + shorten(line) +
                                       "\", two pieces with a space between were expected");
    }
    merges.emplace_back(line.substr(0, space), line.substr(space + 1));
  }
  return merges;
}

/// The tokens of a legacy tokenizer as its files name them.
class TokenReader {
 public:
  TokenReader(const LegacyFiles& files, Class kind, const JsonField& config)
      : files_(files), kind_(kind), config_(config), legacy_(!config["added_tokens_decoder"].present()) {}

  void read(TokenizerSpec& spec) {
    read_control_tokens(spec);
    spec.added = legacy_ ? read_added_tokens_file() : read_added_tokens_decoder();
    for (const auto& [name, token] : control_) add_control(spec.added, token);
    for (const AddedToken& token : extra_) add_extra(spec.added, token);
  }

 private:
  /// The place that names a control token; special_tokens_map.json goes first.
  [[nodiscard]] JsonField place_of(std::string_view key) const {
    const JsonField map(legacy_ ? files_.special_tokens : nullptr, "", "special_tokens_map.json");
    return map[key].value() != nullptr ? map[key] : config_[key];
  }

  void read_control_tokens(TokenizerSpec& spec) {
    for (const std::string_view name : kNamed) {
      const JsonField place = place_of(name);
      std::optional<AddedToken> token = read_config_token(place, true);
      if (place.value() == nullptr && has_default(kind_, name)) {
        token = AddedToken{std::string(kDefaultToken), false, false, false, false, true};
      }
      if (!token) continue;
      if (name == "bos_token") spec.bos = token->content;
      if (name == "eos_token") spec.eos = token->content;
      control_.emplace_back(name, *std::move(token));
    }
    for (const std::string_view key : {"additional_special_tokens", "extra_special_tokens"}) {
      const JsonField list = place_of(key);
      if (!list.present() || list.value()->as_array() == nullptr) continue;
      for (std::size_t i = 0; i < list.array().size(); ++i) {
        const bool plain = list.array()[i].as_string() != nullptr;
        if (auto token = read_config_token(list.element(i), plain)) extra_.push_back(*std::move(token));
      }
    }
  }

  [[nodiscard]] std::vector<AddedToken> read_added_tokens_decoder() const {
    const JsonField list = config_["added_tokens_decoder"];
    std::vector<std::pair<std::int64_t, AddedToken>> tokens;
    for (const auto& [key, value] : list.object()) {
      std::int64_t id = 0;
      const auto [end, error] = std::from_chars(key.data(), key.data() + key.size(), id);
      if (error != std::errc() || end != key.data() + key.size()) list[key].fail("is not under a token id");
      tokens.emplace_back(id, *read_config_token(list[key], false));
    }
    return in_order(std::move(tokens));
  }

  [[nodiscard]] std::vector<AddedToken> read_added_tokens_file() const {
    std::vector<std::pair<std::int64_t, AddedToken>> tokens;
    if (files_.added_tokens == nullptr) return {};
    for (const VocabEntry& entry : read_vocab(files_.added_tokens, "", "added_tokens.json")) {
      const auto same = [&](const AddedToken& token) { return token.content == entry.spelling; };
      const bool special =
          std::any_of(control_.begin(), control_.end(), [&](const auto& c) { return same(c.second); }) ||
          std::any_of(extra_.begin(), extra_.end(), same);
      tokens.emplace_back(entry.id,
                          AddedToken{std::string(entry.spelling), false, false, false, !special, special});
    }
    return in_order(std::move(tokens));
  }

  static std::vector<AddedToken> in_order(std::vector<std::pair<std::int64_t, AddedToken>> tokens) {
    std::stable_sort(tokens.begin(), tokens.end(),
                     [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<AddedToken> list;
    for (auto& [id, token] : tokens) list.push_back(std::move(token));
    return list;
  }

  static AddedToken* find(std::vector<AddedToken>& list, std::string_view content) {
    const auto found = std::find_if(list.begin(), list.end(),
                                    [&](const AddedToken& token) { return token.content == content; });
    return found == list.end() ? nullptr : &*found;
  }

  /// Qwen2Tokenizer sets the flags of its control tokens anew; GPT2Tokenizer keeps those that are written.
  void add_control(std::vector<AddedToken>& list, const AddedToken& token) const {
    const AddedToken plain{token.content, false, false, false, false, true};
    AddedToken* known = find(list, token.content);
    if (known == nullptr) {
      list.push_back(kind_ == Class::qwen2 ? plain : token);
    } else if (kind_ == Class::qwen2) {
      *known = plain;
    } else {
      known->special = true;
    }
  }

  void add_extra(std::vector<AddedToken>& list, const AddedToken& token) const {
    if (kind_ == Class::qwen2) {
      add_control(list, token);
    } else if (find(list, token.content) == nullptr) {
      list.push_back(token);
    }
  }

  const LegacyFiles& files_;
  Class kind_;
  const JsonField& config_;
  bool legacy_;
  std::vector<std::pair<std::string_view, AddedToken>> control_;
  std::vector<AddedToken> extra_;
};

}  // namespace

TokenizerSpec read_legacy_files(const LegacyFiles& files) {
  const std::string source = std::string(files.folder) + "/" + std::string(kConfig);
  const JsonField config(files.config, "", source);
  const Class kind = read_class(config);
  TokenizerSpec spec;
  spec.model.vocab = read_vocab(files.vocab, "", std::string(files.folder) + "/vocab.json");
  spec.model.merges = read_merges_text(files.merges, files.folder);
  spec.split.add_prefix_space = config["add_prefix_space"].boolean_or(false);
  if (kind == Class::qwen2) {
    spec.nfc = true;
    spec.split.rules = {SplitRule::qwen2};
  } else if (spec.split.add_prefix_space) {
    spec.split.split_again = true;
  } else {
    spec.split.rules = {SplitRule::gpt2};
  }
  TokenReader(files, kind, config).read(spec);
  spec.add_bos = config["add_bos_token"].boolean_or(false);
  spec.add_eos = config["add_eos_token"].boolean_or(false);
  return spec;
}

}  // namespace qgen
