#pragma once

#include <string_view>

#include "qgen/base/json.h"
#include "tokenizer/spec.h"

namespace qgen {

/// The files of a tokenizer without tokenizer.json, parsed; those that a folder lacks are null. The texts and
/// values must outlive what is read from them.
struct LegacyFiles {
  const Json* vocab;           ///< vocab.json
  std::string_view merges;     ///< merges.txt
  const Json* config;          ///< tokenizer_config.json
  const Json* added_tokens;    ///< added_tokens.json, only read if the config does not list added tokens
  const Json* special_tokens;  ///< special_tokens_map.json, likewise
  std::string_view folder;     ///< for messages
};

/// Reads a folder that has vocab.json and merges.txt. They do not say how a text is split: that follows from
/// the tokenizer_class, GPT2Tokenizer or Qwen2Tokenizer (with or without "Fast"), as do default control
/// tokens. Throws Error{unsupported} for another class, Error{file} for what is damaged.
TokenizerSpec read_legacy_files(const LegacyFiles& files);

}  // namespace qgen
