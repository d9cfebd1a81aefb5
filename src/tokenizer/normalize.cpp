#include "tokenizer/normalize.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <utility>
#include <vector>

#include "qgen/base/utf8.h"
#include "tokenizer/normalization_tables.h"

namespace qgen::unicode {
namespace {

constexpr std::uint8_t kClassMask = 63;     // index into kCombiningClasses
constexpr std::uint8_t kMayCompose = 64;    // may compose with what stands before it
constexpr std::uint8_t kNeverNormal = 128;  // NFC replaces it
constexpr char32_t kRawByte = 0x110000;     // added to a byte that is not UTF-8
constexpr char32_t kNoComposite = 0xFFFFFFFF;

// Hangul syllables are composed by arithmetic (Unicode 15, section 3.12).
constexpr char32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
constexpr char32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28;
constexpr char32_t kSyllableCount = kLeadCount * kVowelCount * kTailCount;

std::uint8_t properties_of(char32_t c) noexcept {
  if (c >= kRawByte) return 0;
  const std::size_t block = kNormIndex[c / kNormBlockSize];
  return kNormBlocks[block * kNormBlockSize + c % kNormBlockSize];
}

/// A character and its canonical combining class.
struct Unit {
  char32_t code_point;
  std::uint8_t combining;
};

void append_unit(std::vector<Unit>& units, char32_t c) {
  units.push_back({c, kCombiningClasses[properties_of(c) & kClassMask]});
}

void append_decomposed(std::vector<Unit>& units, char32_t c) {
  if (c - kSyllables < kSyllableCount) {
    const char32_t index = c - kSyllables;
    append_unit(units, kLeads + index / (kVowelCount * kTailCount));
    append_unit(units, kVowels + index / kTailCount % kVowelCount);
    if (index % kTailCount != 0) append_unit(units, kTails + index % kTailCount);
    return;
  }
  const auto found = std::lower_bound(kDecomposed.begin(), kDecomposed.end(), c);
  if (found == kDecomposed.end() || *found != c) {
    append_unit(units, c);
    return;
  }
  const auto i = static_cast<std::size_t>(found - kDecomposed.begin());
  for (std::size_t k = i == 0 ? 0 : kDecompositionEnds[i - 1]; k < kDecompositionEnds[i]; ++k) {
    append_unit(units, kDecompositions[k]);
  }
}

char32_t composite_of(char32_t first, char32_t second) noexcept {
  if (first - kLeads < kLeadCount && second - kVowels < kVowelCount) {
    return kSyllables + ((first - kLeads) * kVowelCount + (second - kVowels)) * kTailCount;
  }
  if (first - kSyllables < kSyllableCount && (first - kSyllables) % kTailCount == 0 && second > kTails &&
      second - kTails < kTailCount) {
    return first + (second - kTails);
  }
  const auto firsts = std::equal_range(kComposeFirst.begin(), kComposeFirst.end(), first);
  const auto seconds = kComposeSecond.begin() + (firsts.first - kComposeFirst.begin());
  const auto end = kComposeSecond.begin() + (firsts.second - kComposeFirst.begin());
  const auto found = std::lower_bound(seconds, end, second);
  if (found == end || *found != second) return kNoComposite;
  return kComposite[static_cast<std::size_t>(found - kComposeSecond.begin())];
}

/// Puts each run of combining characters into the order of their classes.
void order_canonically(std::vector<Unit>& units) {
  for (auto run = units.begin(); run != units.end();) {
    if (run->combining == 0) {
      ++run;
      continue;
    }
    const auto end = std::find_if(run, units.end(), [](const Unit& u) { return u.combining == 0; });
    std::stable_sort(run, end, [](const Unit& a, const Unit& b) { return a.combining < b.combining; });
    run = end;
  }
}

void compose(std::vector<Unit>& units) {
  constexpr std::size_t none = SIZE_MAX;
  std::size_t starter = none;
  std::size_t size = 0;
  for (const Unit unit : units) {
    const bool adjacent = starter + 1 == size;
    if (starter != none && (adjacent || units[size - 1].combining < unit.combining)) {
      const char32_t composite = composite_of(units[starter].code_point, unit.code_point);
      if (composite != kNoComposite) {
        units[starter].code_point = composite;
        continue;
      }
    }
    if (unit.combining == 0) starter = size;
    units[size++] = unit;
  }
  units.resize(size);
}

/// Appends the normal form of `text`, in which nothing depends on what surrounds it.
void append_normalized(std::string_view text, std::vector<Unit>& units, std::string& out) {
  units.clear();
  for (std::size_t i = 0; i < text.size();) {
    const Utf8Char c = decode_utf8(text, i);
    if (c.valid) {
      append_decomposed(units, c.code_point);
    } else {
      units.push_back({kRawByte + c.code_point, 0});
    }
    i += c.length;
  }
  order_canonically(units);
  compose(units);
  for (const Unit unit : units) {
    if (unit.code_point >= kRawByte) {
      out += static_cast<char>(static_cast<unsigned char>(unit.code_point - kRawByte));
    } else {
      append_utf8(out, unit.code_point);
    }
  }
}

/// The first offset from `i` on whose byte is not ASCII.
std::size_t skip_ascii(std::string_view text, std::size_t i) noexcept {
  constexpr std::uint64_t high_bits = 0x8080808080808080;
  std::uint64_t word = 0;
  for (; i + sizeof word <= text.size(); i += sizeof word) {
    std::memcpy(&word, text.data() + i, sizeof word);
    if ((word & high_bits) != 0) break;
  }
  while (i < text.size() && static_cast<unsigned char>(text[i]) < 0x80) ++i;
  return i;
}

/// A part of a text that must be normalised: from a character before which nothing reaches in to the next
/// one.
struct Segment {
  std::size_t begin;
  std::size_t end;
};

/// The first segment from `i` on that may not be normal; an empty one at the end if there is none. `i` must
/// be the beginning of a character that does not interact with what stands before it.
Segment next_segment(std::string_view text, std::size_t i) noexcept {
  std::size_t begin = i;
  std::uint8_t last = 0;  // combining class of the character before
  bool normal = true;
  while (i < text.size()) {
    if (const std::size_t skipped = skip_ascii(text, i); skipped != i) {
      if (!normal) return {begin, i};
      begin = skipped - 1;
      last = 0;
      i = skipped;
      continue;
    }
    const Utf8Char c = decode_utf8(text, i);
    const std::uint8_t properties = c.valid ? properties_of(c.code_point) : std::uint8_t{0};
    if (properties == 0) {
      if (!normal) return {begin, i};
      begin = i;
    }
    // Classes are sorted, so their indices compare as they do.
    const auto combining = static_cast<std::uint8_t>(properties & kClassMask);
    normal =
        normal && (properties & (kMayCompose | kNeverNormal)) == 0 && (combining == 0 || combining >= last);
    last = combining;
    i += c.length;
  }
  return normal ? Segment{i, i} : Segment{begin, i};
}

}  // namespace

std::string_view nfc(std::string_view text, std::string& buffer) {
  std::vector<Unit> units;
  std::size_t copied = 0;
  for (std::size_t i = 0; i < text.size();) {
    const Segment segment = next_segment(text, i);
    if (segment.begin == segment.end) break;
    if (copied == 0) buffer.clear();
    buffer += text.substr(copied, segment.begin - copied);
    append_normalized(text.substr(segment.begin, segment.end - segment.begin), units, buffer);
    copied = i = segment.end;
  }
  if (copied == 0) return text;
  buffer += text.substr(copied);
  return buffer;
}

}  // namespace qgen::unicode
