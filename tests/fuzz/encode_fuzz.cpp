// Any bytes as text; the first byte chooses a tokenizer and the options. Decoding must give the text back as
// far as the tokenizer promises it, and streaming must not change it.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "../tokenizer/small_tokenizer.h"
#include "qgen/tokenizer/stream_text.h"
#include "qgen/tokenizer/tokenizer.h"

namespace {

using qgen::testing::added_token;
using qgen::testing::SmallTokenizer;

std::string split(const std::string& pattern) {
  return R"x({"type": "Sequence", "pretokenizers": [{"type": "Split", "pattern": {"Regex": ")x" + pattern +
         R"x("}, "behavior": "Isolated", "invert": false},)x"
         R"x( {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})x";
}

const std::string kSpaces = R"(|\\s*[\\r\\n]+|\\s+(?!\\S)|\\s+)";
const std::string kContractions = R"((?i:'s|'t|'re|'ve|'m|'ll|'d))";
const std::string kSymbols = R"(| ?[^\\s\\p{L}\\p{N}]+[\\r\\n]*)";
const std::string kCapitals = R"([\\p{Lu}\\p{Lt}\\p{Lm}\\p{Lo}\\p{M}])";
const std::string kSmall = R"([\\p{Ll}\\p{Lm}\\p{Lo}\\p{M}])";
const std::string kPrefix = R"([^\\r\\n\\p{L}\\p{N}]?)";
const std::string kQwen = kContractions + "|" + kPrefix + R"(\\p{L}+|\\p{N})" + kSymbols + kSpaces;
const std::string kLlama = kContractions + "|" + kPrefix + R"(\\p{L}+|\\p{N}{1,3})" + kSymbols + kSpaces;
const std::string kTekken = kPrefix + kCapitals + "*" + kSmall + "+|" + kPrefix + kCapitals + "+" + kSmall +
                            R"(*|\\p{N}| ?[^\\s\\p{L}\\p{N}]+[\\r\\n/]*)" + kSpaces;

struct Subject {
  qgen::Tokenizer tokenizer;
  bool exact;       // decoding gives the text back
  bool idempotent;  // decoding and encoding again gives the same ids
};

Subject make(SmallTokenizer small, bool exact, bool idempotent) {
  small.pieces = {"th",           "the",          "\u0120the",    "aa",      "aaaa",
                  "\u010a\u010a", "\u0120\u0120", "\u00f0\u0141", "e\u00cc", "12"};
  small.merges =
      "[[\"t\", \"h\"], [\"th\", \"e\"], [\"\u0120\", \"the\"], [\"a\", \"a\"], [\"aa\", \"aa\"],"
      " [\"\u010a\", \"\u010a\"], [\"\u0120\", \"\u0120\"], [\"\u00f0\", \"\u0141\"], [\"e\", \"\u00cc\"],"
      " [\"1\", \"2\"]]";
  return {qgen::Tokenizer::from_json(small.json(), "", "fuzz"), exact, idempotent};
}

std::vector<Subject> make_subjects() {
  const std::string nfc = R"({"type": "NFC"})";
  const std::string added =
      "[" + added_token(266, "<x>", {"lstrip"}) + "," + added_token(267, "the", {"single_word"}) + "," +
      added_token(268, "  ", {"rstrip"}) + "," + added_token(269, "<|s|>", {"special"}) + "," +
      added_token(270, "\u00e9", {"normalized"}) + "]";
  std::vector<Subject> subjects;
  subjects.push_back(make({.normalizer = nfc, .pre_tokenizer = split(kQwen)}, false, true));
  subjects.push_back(make({}, true, true));
  subjects.push_back(
      make({.pre_tokenizer = split(kLlama), .model_fields = "\"ignore_merges\": true, "}, true, true));
  subjects.push_back(make({.pre_tokenizer = split(kTekken)}, true, true));
  subjects.push_back(make({.pre_tokenizer = R"({"type": "Sequence", "pretokenizers": [)"
                                            R"({"type": "Digits", "individual_digits": true},)"
                                            R"( {"type": "ByteLevel", "add_prefix_space": false}]})"},
                          true, true));
  subjects.push_back(make({.pre_tokenizer = R"({"type": "Sequence", "pretokenizers": [)"
                                            R"({"type": "Digits", "individual_digits": false},)"
                                            R"( {"type": "ByteLevel", "add_prefix_space": true}]})"},
                          false, false));
  subjects.push_back(make({.added = added, .normalizer = nfc, .pre_tokenizer = split(kQwen)}, false, false));
  return subjects;
}

void check(bool condition) {
  if (!condition) __builtin_trap();
}

std::string streamed(const qgen::Tokenizer& tokenizer, const std::vector<qgen::TokenId>& ids) {
  qgen::StreamText stream;
  std::string text;
  std::size_t pushed = 0;
  for (const qgen::TokenId id : ids) {
    text += stream.push(tokenizer.bytes(id));
    pushed += tokenizer.bytes(id).size();
    check(text.size() <= pushed && pushed - text.size() <= 3);
  }
  return text + stream.flush();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::vector<Subject> subjects = make_subjects();
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Subject& subject = subjects[(data[0] & 0x7F) % subjects.size()];
  const qgen::EncodeOptions options{.parse_special = (data[0] & 0x80) != 0};
  const std::vector<qgen::TokenId> ids = subject.tokenizer.encode(text, options);
  for (const qgen::TokenId id : ids) check(subject.tokenizer.is_known(id));
  const std::string decoded = subject.tokenizer.decode(ids);
  check(streamed(subject.tokenizer, ids) == decoded);
  if (subject.exact) check(decoded == text);
  if (subject.idempotent) check(subject.tokenizer.encode(decoded, options) == ids);
  return 0;
}
