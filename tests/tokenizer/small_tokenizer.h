#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "tokenizer/byte_alphabet.h"

namespace qgen::testing {

inline std::string json_string(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out + "\"";
}

/// A tokenizer.json with a piece for every byte (id: the byte) and what a test adds.
struct SmallTokenizer {
  std::vector<std::string> pieces{};  ///< with ids from 256 on
  std::string merges = "[]";
  std::string added = "[]";
  std::string normalizer = "null";
  std::string pre_tokenizer = R"({"type": "ByteLevel", "add_prefix_space": false, "use_regex": true})";
  std::string post_processor = "null";
  std::string decoder = R"({"type": "ByteLevel"})";
  std::string model_fields{};  ///< more members of the model, each with a comma behind it
  std::string more_vocab{};    ///< more members of the vocabulary, each with a comma before it

  [[nodiscard]] std::string vocab() const {
    std::string text = "{";
    for (unsigned byte = 0; byte < 256; ++byte) {
      if (byte > 0) text += ", ";
      text += json_string(byte_alphabet::spelling_of(static_cast<unsigned char>(byte))) + ": " +
              std::to_string(byte);
    }
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      text += ", " + json_string(pieces[i]) + ": " + std::to_string(256 + i);
    }
    return text + more_vocab + "}";
  }

  [[nodiscard]] std::string json() const {
    return R"({"version": "1.0", "added_tokens": )" + added + R"(, "normalizer": )" + normalizer +
           R"(, "pre_tokenizer": )" + pre_tokenizer + R"(, "post_processor": )" + post_processor +
           R"(, "decoder": )" + decoder + R"(, "model": {)" + model_fields + R"("type": "BPE", "vocab": )" +
           vocab() + R"(, "merges": )" + merges + "}}";
  }
};

/// An entry of added_tokens; `flags` are those that are true.
inline std::string added_token(int id, std::string_view content, const std::vector<std::string>& flags = {}) {
  std::string text = "{\"id\": " + std::to_string(id) + ", \"content\": " + json_string(content);
  for (const std::string flag : {"single_word", "lstrip", "rstrip", "normalized", "special"}) {
    const bool set = std::find(flags.begin(), flags.end(), flag) != flags.end();
    text += ", \"" + flag + "\": " + (set ? "true" : "false");
  }
  return text + "}";
}

}  // namespace qgen::testing
