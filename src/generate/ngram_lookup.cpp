#include "generate/ngram_lookup.h"

#include <algorithm>
#include <array>
#include <limits>

namespace qgen {
namespace {

constexpr std::size_t kFewestEntries = std::size_t{1} << 12;
constexpr std::size_t kMostEntries = std::size_t{1} << 20;
constexpr std::size_t kLengths = NgramLookup::kLongest - NgramLookup::kShortest + 1;
/// Longer matches do not change how much is guessed.
constexpr std::size_t kCompared = 16;

using Hashes = std::array<std::uint64_t, NgramLookup::kLongest + 1>;

/// hashes[n] is that of the n tokens before `end`; 0 where the text has fewer. One multiplication a token
/// serves all lengths.
Hashes hash_back(const std::vector<TokenId>& text, std::size_t end) {
  Hashes hashes{};
  std::uint64_t hash = 0;
  for (std::size_t n = 1; n <= std::min(NgramLookup::kLongest, end); ++n) {
    hash = (hash ^ (static_cast<std::uint64_t>(text[end - n]) + n)) * 0x9E3779B97F4A7C15U;
    hash ^= hash >> 29;
    hashes[n] = hash;
  }
  return hashes;
}

std::size_t entry_of(std::uint64_t hash, std::size_t entries) {
  return static_cast<std::size_t>(hash >> 20) & (entries - 1);
}

}  // namespace

void NgramLookup::add(TokenId id) {
  // Places have 32 bits; texts beyond that, which no machine holds today, are not indexed further.
  if (text_.size() >= std::numeric_limits<std::uint32_t>::max()) return;
  if (ends_.size() < std::min(kMostEntries, 4 * kLengths * text_.size())) grow();
  index_end(text_.size());  // only now is it known what follows
  text_.push_back(id);
}

/// Twice the entries, filled anew.
void NgramLookup::grow() {
  ends_.assign(std::max(kFewestEntries, 2 * ends_.size()), 0);
  for (std::size_t end = kShortest; end < text_.size(); ++end) index_end(end);
}

void NgramLookup::index_end(std::size_t end) {
  const Hashes hashes = hash_back(text_, end);
  for (std::size_t n = kShortest; n <= std::min(kLongest, end); ++n) {
    ends_[entry_of(hashes[n], ends_.size())] = static_cast<std::uint32_t>(end);
  }
}

/// How many tokens before `end` equal the last ones of the text.
std::size_t NgramLookup::match_length(std::size_t end, std::size_t most) const {
  std::size_t n = 0;
  while (n < std::min(most, end) && text_[end - 1 - n] == text_[text_.size() - 1 - n]) ++n;
  return n;
}

/// Where the longest n-gram that ends the text ended before; 0: nowhere.
std::size_t NgramLookup::latest_match() const {
  if (ends_.empty()) return 0;
  const Hashes hashes = hash_back(text_, text_.size());
  for (std::size_t n = std::min(kLongest, text_.size()); n >= kShortest; --n) {
    const std::size_t end = ends_[entry_of(hashes[n], ends_.size())];
    if (end > 0 && match_length(end, n) == n) return end;
  }
  return 0;
}

void NgramLookup::find(std::size_t most, std::vector<TokenId>& guess) const {
  guess.clear();
  const std::size_t end = latest_match();
  if (end == 0) return;
  const std::size_t count = std::min(most, match_length(end, kCompared));
  const std::size_t period = text_.size() - end;
  for (std::size_t i = 0; i < count; ++i) guess.push_back(i < period ? text_[end + i] : guess[i - period]);
}

std::size_t NgramLookup::bytes() const noexcept {
  return text_.capacity() * sizeof(TokenId) + ends_.capacity() * sizeof(std::uint32_t);
}

}  // namespace qgen
