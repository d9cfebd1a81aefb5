#include "tokenizer/split.h"

#include <array>
#include <limits>

#include "tokenizer/characters.h"

namespace qgen {
namespace {

using unicode::Character;
using unicode::character_at;

constexpr unsigned kNoSymbol = unicode::space | unicode::letter | unicode::number;
constexpr char32_t kLongS = 0x17F;

bool is_newline(char32_t c) noexcept {
  return c == '\r' || c == '\n';
}

// The classes that cased words are made of: what may begin a word, and what may go on after its first
// capitals.
bool is_head(Character c) noexcept {
  return c.is(unicode::mark) || (c.is(unicode::letter) && !c.is(unicode::lower));
}
bool is_tail(Character c) noexcept {
  return c.is(unicode::mark) || (c.is(unicode::letter) && !c.is(unicode::upper));
}

/// The first offset from `i` on whose character does not satisfy `belongs`; at most `limit` characters
/// further.
template <typename Belongs>
std::size_t run_end(std::string_view text, std::size_t i, Belongs belongs,
                    std::size_t limit = std::numeric_limits<std::size_t>::max()) noexcept {
  for (; i < text.size() && limit > 0; --limit) {
    const Character c = character_at(text, i);
    if (!belongs(c)) break;
    i += c.length;
  }
  return i;
}

std::size_t letters_end(std::string_view text, std::size_t i) noexcept {
  return run_end(text, i, [](Character c) { return c.is(unicode::letter); });
}

std::size_t numbers_end(std::string_view text, std::size_t i, std::size_t limit) noexcept {
  return run_end(
      text, i, [](Character c) { return c.is(unicode::number); }, limit);
}

std::size_t symbols_end(std::string_view text, std::size_t i) noexcept {
  return run_end(text, i, [](Character c) { return !c.is(kNoSymbol); });
}

/// Where 's 't 're 've 'm 'll 'd at `i` ends, or `i` if there is none.
std::size_t contraction_end(std::string_view text, std::size_t i, bool ignore_case) noexcept {
  if (text.size() - i < 2 || text[i] != '\'') return i;
  const auto small = [&](std::size_t at) {
    if (at >= text.size()) return '\0';
    const char c = text[at];
    return ignore_case && c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  const char first = small(i + 1);
  const char second = small(i + 2);
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return i + 2;
  if ((first == 'r' || first == 'v') && second == 'e') return i + 3;
  if (first == 'l' && second == 'l') return i + 3;
  // The long s is the one letter outside ASCII that case folding equates with one of these.
  const Character c = character_at(text, i + 1);
  return ignore_case && c.length == 2 && c.code_point == kLongS ? i + 3 : i;
}

/// The end of a piece of white space: up to the last newline of the run where newlines are kept together,
/// else all of it but one character that is left to the word that follows.
std::size_t spaces_end(std::string_view text, std::size_t begin, bool keep_newlines) noexcept {
  std::size_t i = begin;
  std::size_t last = begin;     // where the last character of the run begins
  std::size_t newline = begin;  // where the last newline of the run ends
  while (i < text.size()) {
    const Character c = character_at(text, i);
    if (!c.is(unicode::space)) break;
    last = i;
    i += c.length;
    if (is_newline(c.code_point)) newline = i;
  }
  if (keep_newlines && newline > begin) return newline;
  return i == text.size() || last == begin ? i : last;
}

std::size_t gpt2_end(std::string_view text, std::size_t begin) noexcept {
  if (const std::size_t end = contraction_end(text, begin, false); end != begin) return end;
  const std::size_t i = text[begin] == ' ' ? begin + 1 : begin;
  if (i < text.size()) {
    const Character c = character_at(text, i);
    if (c.is(unicode::letter)) return letters_end(text, i);
    if (c.is(unicode::number)) return numbers_end(text, i, std::numeric_limits<std::size_t>::max());
    if (!c.is(unicode::space)) return symbols_end(text, i);
  }
  return spaces_end(text, begin, false);
}

/// What differs between the rules that came after GPT-2's.
struct Style {
  bool cased_words;
  bool contractions_apart;
  bool contractions_in_words;
  std::size_t digits;
  bool slashes_after_symbols;
};

constexpr Style kQwen2{false, true, false, 1, false};
constexpr Style kLlama3{false, true, false, 3, false};
constexpr Style kTekken{true, false, false, 1, true};
constexpr Style kO200k{true, false, true, 3, true};

/// What stands at a place of a cased word: capitals, then small letters; letters without case and marks count
/// as both. Without a small letter to be had, `end` is the end of the capitals.
struct CasedWord {
  std::size_t end;
  bool has_small;
};

CasedWord cased_word(std::string_view text, std::size_t begin) noexcept {
  std::size_t i = begin;
  std::size_t small = begin;  // where the last character among the capitals that counts as small ends
  while (i < text.size()) {
    const Character c = character_at(text, i);
    if (!is_head(c)) {
      if (is_tail(c)) return {run_end(text, i, is_tail), true};
      break;
    }
    i += c.length;
    if (is_tail(c)) small = i;
  }
  return small > begin ? CasedWord{small, true} : CasedWord{i, false};
}

/// Where the word at `begin` ends, one character before it included that is neither letter, number nor
/// newline; `begin` if there is no word.
std::size_t word_end(const Style& style, std::string_view text, std::size_t begin, Character first) noexcept {
  if (first.is(unicode::letter)) {
    return style.cased_words ? cased_word(text, begin).end : letters_end(text, begin);
  }
  if (first.is(unicode::number) || is_newline(first.code_point)) return begin;
  const std::size_t next = begin + first.length;
  if (!style.cased_words) {
    const std::size_t end = letters_end(text, next);
    return end > next ? end : begin;
  }
  const CasedWord word = cased_word(text, next);
  if (word.has_small) return word.end;
  if (first.is(unicode::mark)) return next;
  return word.end > next ? word.end : begin;
}

std::size_t styled_end(const Style& style, std::string_view text, std::size_t begin) noexcept {
  if (style.contractions_apart) {
    if (const std::size_t end = contraction_end(text, begin, true); end != begin) return end;
  }
  const Character first = character_at(text, begin);
  if (const std::size_t end = word_end(style, text, begin, first); end != begin) {
    return style.contractions_in_words ? contraction_end(text, end, true) : end;
  }
  if (first.is(unicode::number)) return numbers_end(text, begin, style.digits);
  const std::size_t i = first.code_point == ' ' ? begin + 1 : begin;
  if (const std::size_t end = symbols_end(text, i); end != i) {
    return run_end(text, end, [&](Character c) {
      return is_newline(c.code_point) || (style.slashes_after_symbols && c.code_point == '/');
    });
  }
  return spaces_end(text, begin, true);
}

std::size_t digits_end(std::string_view text, std::size_t begin, bool each) noexcept {
  const Character first = character_at(text, begin);
  const bool numeric = first.is(unicode::numeric);
  if (each && numeric) return begin + first.length;
  return run_end(text, begin, [numeric](Character c) { return c.is(unicode::numeric) == numeric; });
}

}  // namespace

std::optional<SplitRule> split_rule_of_pattern(std::string_view pattern) noexcept {
  struct Published {
    std::string_view pattern;
    SplitRule rule;
  };
  constexpr std::array<Published, 5> published{{
      {R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)", SplitRule::gpt2},
      {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
       R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
       SplitRule::qwen2},
      {R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*)"
       R"(|\s*[\r\n]+|\s+(?!\S)|\s+)",
       SplitRule::llama3},
      {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
       R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
       R"(|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       SplitRule::tekken},
      {R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+)"
       R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
       R"(|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*)"
       R"((?i:'s|'t|'re|'ve|'m|'ll|'d)?)"
       R"(|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)",
       SplitRule::o200k},
  }};
  for (const Published& known : published) {
    if (known.pattern == pattern) return known.rule;
  }
  return std::nullopt;
}

std::size_t piece_end(SplitRule rule, std::string_view text, std::size_t begin) noexcept {
  switch (rule) {
    case SplitRule::gpt2:
      return gpt2_end(text, begin);
    case SplitRule::qwen2:
      return styled_end(kQwen2, text, begin);
    case SplitRule::llama3:
      return styled_end(kLlama3, text, begin);
    case SplitRule::tekken:
      return styled_end(kTekken, text, begin);
    case SplitRule::o200k:
      return styled_end(kO200k, text, begin);
    case SplitRule::each_digit:
      return digits_end(text, begin, true);
    case SplitRule::runs_of_digits:
      return digits_end(text, begin, false);
  }
  return text.size();
}

std::string_view PieceReader::next() noexcept {
  std::string_view rest = text_;
  for (std::size_t i = 0; i < rules_.size(); ++i) {
    if (ends_[i] == position_) ends_[i] = piece_end(rules_[i], rest, position_);
    rest = rest.substr(0, ends_[i]);
  }
  const std::string_view piece = rest.substr(position_);
  position_ = rest.size();
  return piece;
}

}  // namespace qgen
