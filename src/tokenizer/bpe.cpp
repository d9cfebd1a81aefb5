#include "tokenizer/bpe.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>

#include "qgen/base/error.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"
#include "tokenizer/byte_alphabet.h"
#include "tokenizer/hash.h"

namespace qgen {
namespace {

constexpr TokenId kNone = -1;
constexpr std::uint32_t kNoPosition = std::numeric_limits<std::uint32_t>::max();
constexpr std::size_t kLongestPiece = kNoPosition - 1;
/// Loading waits for memory most of all: what will be looked up is asked for this many pieces before.
constexpr std::size_t kAhead = 16;

[[noreturn]] void fail(std::string_view source, const std::string& reason) {
  throw Error(ErrorKind::file, escape_control(source) + ": " + reason);
}

std::uint64_t pair_key(TokenId left, TokenId right) noexcept {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(left)) << 32 |
         static_cast<std::uint32_t>(right);
}

/// Slots of an open-addressing table that is to hold `count` entries: at most half of them full.
std::size_t table_size(std::size_t count) {
  return std::bit_ceil(2 * count + 2);
}

std::size_t slot_of(std::uint64_t hash, std::size_t slots) noexcept {
  return static_cast<std::size_t>(hash >> 20) & (slots - 1);
}

std::uint32_t tag_of(std::uint64_t hash) noexcept {
  return static_cast<std::uint32_t>(hash >> 32);
}

}  // namespace

Bpe::Bpe(const BpeSpec& spec, std::string_view source)
    : ignore_merges_(spec.ignore_merges), fuse_unknown_(spec.fuse_unknown) {
  add_vocab(spec.vocab, source);
  add_merges(spec.merges, source);
  map_bytes(spec, source);
}

void Bpe::add_vocab(const std::vector<VocabEntry>& vocab, std::string_view source) {
  table_memory_ = AlignedBuffer(table_size(vocab.size()) * sizeof(TableSlot));  // zeros: free slots
  table_ = table_memory_.as<TableSlot>();
  entries_.reserve(vocab.size());
  for (std::size_t i = 0; i < vocab.size(); ++i) {
    const VocabEntry& entry = vocab[i];
    if (i + kAhead < vocab.size()) __builtin_prefetch(&table_[home_slot(vocab[i + kAhead].spelling)]);
    TableSlot& slot = table_[table_slot(entry.spelling)];
    if (slot.index != 0)
      fail(source, "the piece " + in_quotes(entry.spelling) + " occurs twice in the vocabulary");
    entries_.push_back({spellings_.size(), entry.spelling.size(), entry.id});
    spellings_ += entry.spelling;
    slot = {tag_of(hash_bytes(entry.spelling)), static_cast<std::uint32_t>(entries_.size())};
  }
}

void Bpe::add_merges(const std::vector<Merge>& merges, std::string_view source) {
  if (merges.size() >= kNoPosition) fail(source, "too many merges");
  std::vector<std::uint64_t> pairs;
  pairs.reserve(merges.size());
  merge_results_.reserve(merges.size());
  std::string joined;
  std::size_t next = 0;  // where the piece is that a merge gives, in files that list pieces by rank
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const Merge& merge = merges[i];
    prefetch(merges, i);
    const auto known = [&](std::string_view piece) {
      const std::optional<TokenId> id = find(piece);
      if (!id) {
        fail(source, "merge " + std::to_string(merge_results_.size()) + " (" + in_quotes(merge.first) + " " +
                         in_quotes(merge.second) + ") needs the piece " + in_quotes(piece) +
                         ", which the vocabulary does not have");
      }
      return *id;
    };
    joined.assign(merge.first).append(merge.second);
    pairs.push_back(pair_key(known(merge.first), known(merge.second)));
    const bool listed = next < entries_.size() && spelling(entries_[next]) == joined;
    const TokenId id = listed ? entries_[next].id : known(joined);
    if (!listed) next = table_[table_slot(joined)].index - std::size_t{1};
    ++next;
    merge_results_.push_back(id);
  }
  merges_memory_ = AlignedBuffer(table_size(merges.size()) * sizeof(Merged));
  merges_ = merges_memory_.as<Merged>();
  std::ranges::fill(merges_, Merged{});
  for (std::size_t rank = 0; rank < pairs.size(); ++rank) {
    if (rank + kAhead < pairs.size()) __builtin_prefetch(&merges_[home_slot(pairs[rank + kAhead])]);
    // Where a pair occurs twice the later rank counts, as in the reference.
    merges_[merge_slot(pairs[rank])] = {pairs[rank], static_cast<std::uint32_t>(rank), merge_results_[rank]};
  }
}

/// Brings near what lookups of later merges read: slots first, then the entries that these name.
void Bpe::prefetch(const std::vector<Merge>& merges, std::size_t at) const noexcept {
  if (at + 2 * kAhead < merges.size()) {
    const Merge& merge = merges[at + 2 * kAhead];
    __builtin_prefetch(&table_[home_slot(merge.first)]);
    __builtin_prefetch(&table_[home_slot(merge.second)]);
  }
  if (at + kAhead >= merges.size()) return;
  for (const std::string_view piece : {merges[at + kAhead].first, merges[at + kAhead].second}) {
    const std::uint32_t index = table_[home_slot(piece)].index;
    if (index != 0) __builtin_prefetch(&entries_[index - 1]);
  }
}

void Bpe::map_bytes(const BpeSpec& spec, std::string_view source) {
  bool complete = true;
  for (std::size_t byte = 0; byte < byte_ids_.size(); ++byte) {
    byte_ids_[byte] = find(byte_alphabet::spelling_of(static_cast<unsigned char>(byte))).value_or(kNone);
    complete = complete && byte_ids_[byte] != kNone;
  }
  if (complete || !spec.unknown) return;
  unknown_ = find(*spec.unknown);
  if (!unknown_) fail(source, "the unknown token " + in_quotes(*spec.unknown) + " is not in the vocabulary");
}

std::string_view Bpe::spelling(const Entry& entry) const noexcept {
  return std::string_view(spellings_).substr(entry.offset, entry.length);
}

/// Where a spelling is unless others were there before it.
std::size_t Bpe::home_slot(std::string_view wanted) const noexcept {
  return slot_of(hash_bytes(wanted), table_.size());
}

std::size_t Bpe::table_slot(std::string_view wanted) const noexcept {
  const std::uint64_t hash = hash_bytes(wanted);
  const auto holds_other = [&](const TableSlot& slot) {
    return slot.index != 0 && (slot.tag != tag_of(hash) || spelling(entries_[slot.index - 1]) != wanted);
  };
  std::size_t slot = slot_of(hash, table_.size());
  while (holds_other(table_[slot])) slot = (slot + 1) & (table_.size() - 1);
  return slot;
}

std::size_t Bpe::home_slot(std::uint64_t pair) const noexcept {
  return slot_of(mix_bits(pair), merges_.size());
}

std::size_t Bpe::merge_slot(std::uint64_t pair) const noexcept {
  std::size_t slot = home_slot(pair);
  while (merges_[slot].pair != kFree && merges_[slot].pair != pair) {
    slot = (slot + 1) & (merges_.size() - 1);
  }
  return slot;
}

std::optional<TokenId> Bpe::find(std::string_view wanted) const noexcept {
  const std::uint32_t index = table_[table_slot(wanted)].index;
  return index == 0 ? std::nullopt : std::optional(entries_[index - 1].id);
}

void Bpe::encode(std::string_view piece, Workspace& workspace, std::vector<TokenId>& ids) const {
  if (ignore_merges_) {
    workspace.spelling.clear();
    for (const char byte : piece) {
      workspace.spelling += byte_alphabet::spelling_of(static_cast<unsigned char>(byte));
    }
    if (const std::optional<TokenId> id = find(workspace.spelling)) {
      ids.push_back(*id);
      return;
    }
  }
  for (; piece.size() > kLongestPiece; piece.remove_prefix(kLongestPiece)) {
    encode_part(piece.substr(0, kLongestPiece), workspace, ids);
  }
  encode_part(piece, workspace, ids);
}

void Bpe::encode_part(std::string_view piece, Workspace& workspace, std::vector<TokenId>& ids) const {
  load_symbols(piece, workspace);
  if (workspace.symbols.empty()) return;
  merge_all(workspace);
  for (std::uint32_t i = 0; i != kNoPosition; i = workspace.symbols[i].next) {
    ids.push_back(workspace.symbols[i].id);
  }
}

void Bpe::load_symbols(std::string_view piece, Workspace& workspace) const {
  auto& symbols = workspace.symbols;
  symbols.clear();
  bool after_unknown = false;
  for (const char c : piece) {
    TokenId id = byte_ids_[static_cast<unsigned char>(c)];
    const bool missing = id == kNone;
    if (missing) {
      if (!unknown_ || (fuse_unknown_ && after_unknown)) continue;
      id = *unknown_;
    }
    after_unknown = missing;
    const auto position = static_cast<std::uint32_t>(symbols.size());
    symbols.push_back({id, kNone, position - 1, position + 1});  // the first one's previous: kNoPosition
  }
  if (!symbols.empty()) symbols.back().next = kNoPosition;
}

/// Notes what the pair at `position` merges to, and queues it.
void Bpe::update_pair(Workspace& workspace, std::uint32_t position) const {
  Workspace::Symbol& symbol = workspace.symbols[position];
  symbol.merged = kNone;
  if (symbol.next == kNoPosition) return;
  const Merged& merge = merges_[merge_slot(pair_key(symbol.id, workspace.symbols[symbol.next].id))];
  if (merge.pair == kFree) return;
  symbol.merged = merge.id;
  workspace.queue.push_back(std::uint64_t{merge.rank} << 32 | position);
}

void Bpe::merge_all(Workspace& workspace) const {
  auto& symbols = workspace.symbols;
  auto& queue = workspace.queue;
  queue.clear();
  for (std::size_t i = 0; i < symbols.size(); ++i) update_pair(workspace, static_cast<std::uint32_t>(i));
  std::make_heap(queue.begin(), queue.end(), std::greater<>());
  const auto requeue = [&](std::uint32_t position) {
    const std::size_t before = queue.size();
    update_pair(workspace, position);
    if (queue.size() != before) std::push_heap(queue.begin(), queue.end(), std::greater<>());
  };
  while (!queue.empty()) {
    std::pop_heap(queue.begin(), queue.end(), std::greater<>());
    const std::uint64_t top = queue.back();
    queue.pop_back();
    const auto position = static_cast<std::uint32_t>(top);
    Workspace::Symbol& symbol = symbols[position];
    // An entry whose pair has changed since is stale.
    if (symbol.merged != merge_results_[top >> 32]) continue;
    Workspace::Symbol& right = symbols[symbol.next];
    symbol.id = symbol.merged;
    symbol.next = right.next;
    right.merged = kNone;
    if (symbol.next != kNoPosition) symbols[symbol.next].previous = position;
    requeue(position);
    if (symbol.previous != kNoPosition) requeue(symbol.previous);
  }
}

}  // namespace qgen
