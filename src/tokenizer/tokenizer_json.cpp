#include "tokenizer/tokenizer_json.h"

#include <cstdint>
#include <limits>
#include <string>

#include "qgen/base/text.h"
#include "tokenizer/json_field.h"

namespace qgen {
namespace {

constexpr std::string_view kOnlyByteLevel = "; only byte-level BPE tokenizers can be read";

[[noreturn]] void refuse_type(const JsonField& part) {
  part.unsupported("of type " + in_quotes(part["type"].string()) + " is not supported" +
                   std::string(kOnlyByteLevel));
}

std::optional<TokenId> token_id(const Json& value) {
  const std::optional<std::int64_t> id = value.as_int();
  if (!id || *id < 0 || *id > std::numeric_limits<TokenId>::max()) return std::nullopt;
  return static_cast<TokenId>(*id);
}

std::vector<AddedToken> read_added_tokens(const JsonField& list) {
  std::vector<AddedToken> tokens;
  if (!list.present()) return tokens;
  for (std::size_t i = 0; i < list.array().size(); ++i) {
    const JsonField token = list.element(i);
    tokens.push_back({token["content"].string(), token["single_word"].boolean(), token["lstrip"].boolean(),
                      token["rstrip"].boolean(), token["normalized"].boolean(), token["special"].boolean()});
  }
  return tokens;
}

/// Whether the normalizer is NFC; nothing else that changes text is supported.
bool read_normalizer(const JsonField& normalizer) {
  if (!normalizer.present()) return false;
  const std::string& type = normalizer["type"].string();
  if (type == "NFC") return true;
  if (type != "Sequence") refuse_type(normalizer);
  const JsonField parts = normalizer["normalizers"];
  bool nfc = false;
  for (std::size_t i = 0; i < parts.array().size(); ++i) nfc = read_normalizer(parts.element(i)) || nfc;
  return nfc;
}

SplitRule read_split(const JsonField& split) {
  const JsonField regex = split["pattern"]["Regex"];
  if (!regex.present())
    split["pattern"].unsupported("is no regular expression" + std::string(kOnlyByteLevel));
  const std::optional<SplitRule> rule = split_rule_of_pattern(regex.string());
  if (!rule) regex.unsupported("is a split rule that is not known: " + in_quotes(regex.string()));
  // The known patterns leave no gap, so keeping the matches apart is the same as removing what lies between.
  const std::string& behavior = split["behavior"].string();
  const bool invert = split["invert"].boolean();
  if (behavior != "Isolated" && !(behavior == "Removed" && invert)) {
    split["behavior"].unsupported("is " + in_quotes(behavior) + ", which is not supported");
  }
  return *rule;
}

/// Collects the parts of a pre_tokenizer; the byte alphabet must come last.
class PreTokenizerReader {
 public:
  void add(const JsonField& part) {
    const std::string& type = part["type"].string();
    if (type == "Sequence") {
      const JsonField parts = part["pretokenizers"];
      for (std::size_t i = 0; i < parts.array().size(); ++i) add(parts.element(i));
      return;
    }
    if (byte_level_) part.unsupported("of type " + in_quotes(type) + " after ByteLevel is not supported");
    if (type == "Split") {
      plan_.rules.push_back(read_split(part));
    } else if (type == "Digits") {
      const bool each = part["individual_digits"].boolean();
      plan_.rules.push_back(each ? SplitRule::each_digit : SplitRule::runs_of_digits);
    } else if (type == "ByteLevel") {
      add_byte_level(part);
    } else {
      refuse_type(part);
    }
  }

  SplitPlan finish(const JsonField& whole) {
    if (!byte_level_) whole.unsupported("has no part of type \"ByteLevel\"" + std::string(kOnlyByteLevel));
    return std::move(plan_);
  }

 private:
  void add_byte_level(const JsonField& part) {
    byte_level_ = true;
    plan_.add_prefix_space = part["add_prefix_space"].boolean();
    if (!part["use_regex"].boolean_or(true)) return;
    if (plan_.add_prefix_space) {
      plan_.split_again = true;
    } else {
      plan_.rules.push_back(SplitRule::gpt2);
    }
  }

  SplitPlan plan_;
  bool byte_level_ = false;
};

SplitPlan read_pre_tokenizer(const JsonField& pre_tokenizer) {
  PreTokenizerReader reader;
  if (pre_tokenizer.present()) reader.add(pre_tokenizer);
  return reader.finish(pre_tokenizer);
}

void append_special(const JsonField& specials, const std::string& name, std::vector<TemplateToken>& tokens) {
  const JsonField list = specials[name]["ids"];
  for (std::size_t i = 0; i < list.array().size(); ++i) {
    const std::optional<TokenId> id = token_id(list.array()[i]);
    if (!id) list.element(i).fail("is no token id");
    tokens.push_back({name, *id});
  }
}

void read_template(const JsonField& processor, TokenizerSpec& spec) {
  const JsonField pieces = processor["single"];
  bool seen = false;
  for (std::size_t i = 0; i < pieces.array().size(); ++i) {
    const JsonField piece = pieces.element(i);
    if (piece["SpecialToken"].present()) {
      const std::string& name = piece["SpecialToken"]["id"].string();
      append_special(processor["special_tokens"], name, seen ? spec.back : spec.front);
      continue;
    }
    if (seen || piece["Sequence"]["id"].string() != "A") piece.unsupported("takes more than one text");
    seen = true;
  }
  if (!seen) pieces.unsupported("leaves the text out");
}

/// `templates` counts them: the reference cannot nest them either.
void read_post_processor(const JsonField& processor, TokenizerSpec& spec, int& templates) {
  if (!processor.present()) return;
  const std::string& type = processor["type"].string();
  if (type == "ByteLevel") return;
  if (type == "Sequence") {
    const JsonField parts = processor["processors"];
    for (std::size_t i = 0; i < parts.array().size(); ++i)
      read_post_processor(parts.element(i), spec, templates);
  } else if (type == "TemplateProcessing") {
    if (++templates > 1) processor.unsupported("is a second template, one is supported");
    read_template(processor, spec);
  } else {
    refuse_type(processor);
  }
}

std::vector<Merge> read_merges(const JsonField& list) {
  std::vector<Merge> merges;
  const JsonArray& items = list.array();
  merges.reserve(items.size());
  const bool pairs = !items.empty() && items.front().as_array() != nullptr;
  for (std::size_t i = 0; i < items.size(); ++i) {
    if (const JsonArray* pair = items[i].as_array(); pairs && pair != nullptr && pair->size() == 2) {
      const std::string* left = (*pair)[0].as_string();
      const std::string* right = (*pair)[1].as_string();
      if (left == nullptr || right == nullptr) list.element(i).fail("is no pair of strings");
      merges.emplace_back(*left, *right);
      continue;
    }
    const std::string* text = pairs ? nullptr : items[i].as_string();
    if (text == nullptr) list.element(i).fail(pairs ? "is no pair of strings" : "is no string");
    if (text->starts_with("#version")) continue;
    const std::size_t space = text->find(' ');
    if (space == std::string::npos || text->find(' ', space + 1) != std::string::npos) {
      list.element(i).fail("is " + in_quotes(*text) + ", two pieces with a space between were expected");
    }
    const std::string_view view = *text;
    merges.emplace_back(view.substr(0, space), view.substr(space + 1));
  }
  return merges;
}

void refuse_affix(const JsonField& affix) {
  if (affix.present() && !affix.string().empty()) {
    affix.unsupported("is " + in_quotes(affix.string()) + ", which is not supported" +
                      std::string(kOnlyByteLevel));
  }
}

BpeSpec read_model(const JsonField& model, std::string_view source) {
  // Files from before the type was written have merges if they are BPE.
  const bool bpe = model["type"].present() ? model["type"].string() == "BPE" : model["merges"].present();
  if (!bpe) {
    const std::string type = model["type"].present() ? in_quotes(model["type"].string()) : "unknown";
    model.unsupported("is of type " + type + std::string(kOnlyByteLevel));
  }
  if (model["byte_fallback"].boolean_or(false)) {
    model["byte_fallback"].unsupported("(SentencePiece) is not supported" + std::string(kOnlyByteLevel));
  }
  refuse_affix(model["continuing_subword_prefix"]);
  refuse_affix(model["end_of_word_suffix"]);
  const JsonField dropout = model["dropout"];
  if (dropout.present() && dropout.value()->as_double() != 0.0) {
    dropout.unsupported("is not zero: such a tokenizer gives other ids each time");
  }
  BpeSpec spec;
  spec.vocab = read_vocab(model["vocab"].value(), "model.vocab", source);
  spec.merges = read_merges(model["merges"]);
  spec.ignore_merges = model["ignore_merges"].boolean_or(false);
  spec.fuse_unknown = model["fuse_unk"].boolean_or(false);
  if (model["unk_token"].present()) spec.unknown = model["unk_token"].string();
  return spec;
}

}  // namespace

std::vector<VocabEntry> read_vocab(const Json* vocab, std::string_view path, std::string_view source) {
  const JsonField field(vocab, std::string(path), source);
  std::vector<VocabEntry> entries;
  entries.reserve(field.object().size());
  for (const auto& [spelling, value] : field.object()) {
    const std::optional<TokenId> id = token_id(value);
    if (!id) {
      field[spelling].fail("is no token id (an integer from 0 to " +
                           std::to_string(std::numeric_limits<TokenId>::max()) + ")");
    }
    entries.push_back({spelling, *id});
  }
  return entries;
}

TokenizerSpec read_tokenizer_json(const Json& root, std::string_view source) {
  const JsonField file(&root, "", source);
  if (root.as_object() == nullptr) JsonField(&root, "the file", source).fail("is no JSON object");
  if (const JsonField version = file["version"]; version.present() && version.string() != "1.0") {
    version.unsupported("is " + in_quotes(version.string()) + ", 1.0 was expected");
  }
  TokenizerSpec spec;
  spec.model = read_model(file["model"], source);
  spec.added = read_added_tokens(file["added_tokens"]);
  spec.nfc = read_normalizer(file["normalizer"]);
  spec.split = read_pre_tokenizer(file["pre_tokenizer"]);
  int templates = 0;
  read_post_processor(file["post_processor"], spec, templates);
  return spec;
}

}  // namespace qgen
