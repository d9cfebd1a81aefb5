#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "qgen/base/bytes.h"

namespace qgen {

/// Remembers the ids of short pieces while one text is encoded: the words of a text repeat. A slot is a cache
/// line; a new piece takes the place of the one that was there. Without slots it remembers nothing.
class PieceCache {
 public:
  /// As many slots as a text of this many bytes is likely to fill.
  explicit PieceCache(std::size_t text_bytes);

  [[nodiscard]] std::optional<std::span<const TokenId>> find(std::string_view piece) const noexcept;
  void insert(std::string_view piece, std::span<const TokenId> ids) noexcept;

 private:
  struct alignas(64) Slot {
    TokenId ids[8];
    std::uint8_t id_count;
    std::uint8_t length;  // 0: empty
    char piece[30];
  };
  static_assert(sizeof(Slot) == 64);

  [[nodiscard]] std::size_t slot_of(std::string_view piece) const noexcept;

  std::vector<Slot> slots_;  // a power of two, or none
};

}  // namespace qgen
