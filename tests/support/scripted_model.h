#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace qgen::test {

/// A model whose every reply is known: tokens are the 256 bytes and a few control tokens, and each token has
/// exactly one that follows it, by default itself. Written as a folder in Hugging Face format.
struct ScriptedModel {
  static constexpr int kEnd = 256;       ///< <|end|>, the tokenizer's end token
  static constexpr int kOtherEnd = 257;  ///< <|stop|>, named by generation_config alone
  static constexpr int kStart = 258;     ///< <|start|>
  static constexpr int kKnown = 259;
  static constexpr int kRows = 264;  ///< rows of the matrices; those from kKnown on stand for nothing

  std::map<int, int> next;  ///< what follows a token, where it is not the token itself
  std::int64_t context = 64;
  bool adds_start = false;    ///< the tokenizer puts <|start|> in front
  bool not_finite = false;    ///< the logits after 'N' are NaN
  bool padding_wins = false;  ///< the rows that stand for nothing have the largest logits
  std::string generation_config = R"({"eos_token_id": [256, 257], "do_sample": false})";
  std::string chat_template;

  /// After "ab", "c": b follows a, c follows b.
  ScriptedModel& chain(const std::string& bytes);
  void write(const std::filesystem::path& folder) const;
};

}  // namespace qgen::test
