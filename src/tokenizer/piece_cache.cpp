#include "tokenizer/piece_cache.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "tokenizer/hash.h"

namespace qgen {
namespace {

constexpr std::size_t kMostSlots = std::size_t{1} << 14;  // 1 MiB: what a second-level cache holds
constexpr std::size_t kBytesPerSlot = 32;

}  // namespace

PieceCache::PieceCache(std::size_t text_bytes)
    : slots_(std::min(kMostSlots, std::bit_floor(text_bytes / kBytesPerSlot))) {}

std::size_t PieceCache::slot_of(std::string_view piece) const noexcept {
  return static_cast<std::size_t>(hash_bytes(piece) >> 40) & (slots_.size() - 1);
}

std::optional<std::span<const TokenId>> PieceCache::find(std::string_view piece) const noexcept {
  if (slots_.empty() || piece.size() > sizeof Slot::piece) return std::nullopt;
  const Slot& slot = slots_[slot_of(piece)];
  if (slot.length != piece.size() || std::memcmp(slot.piece, piece.data(), piece.size()) != 0) {
    return std::nullopt;
  }
  return std::span<const TokenId>(slot.ids, slot.id_count);
}

void PieceCache::insert(std::string_view piece, std::span<const TokenId> ids) noexcept {
  if (slots_.empty() || piece.size() > sizeof Slot::piece || ids.size() > std::size(Slot{}.ids)) return;
  Slot& slot = slots_[slot_of(piece)];
  slot.length = static_cast<std::uint8_t>(piece.size());
  slot.id_count = static_cast<std::uint8_t>(ids.size());
  std::memcpy(slot.piece, piece.data(), piece.size());
  std::copy(ids.begin(), ids.end(), slot.ids);
}

}  // namespace qgen
