#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/base/aligned_buffer.h"
#include "qgen/base/bytes.h"
#include "tokenizer/spec.h"

namespace qgen {

/// Byte-level byte pair encoding: a piece's bytes become ids, then the pair of neighbours with the lowest
/// rank is merged, the leftmost first, until no pair has a rank.
class Bpe {
 public:
  /// Buffers that encode() uses again and again.
  class Workspace {
    friend class Bpe;
    struct Symbol {
      TokenId id;
      TokenId merged;  // what merging with the next symbol gives; none where the pair has no rank
      std::uint32_t previous;
      std::uint32_t next;
    };
    std::vector<Symbol> symbols;
    std::vector<std::uint64_t> queue;  // rank << 32 | position, a heap with the lowest on top
    std::string spelling;
  };

  /// Throws Error{file} beginning with `source` for ids that are doubled and merges that name unknown pieces.
  Bpe(const BpeSpec& spec, std::string_view source);

  /// Appends the ids of one piece. O(n log n). A piece of 4 GiB or more is cut there first.
  void encode(std::string_view piece, Workspace& workspace, std::vector<TokenId>& ids) const;

  [[nodiscard]] std::optional<TokenId> find(std::string_view spelling) const noexcept;
  /// Pieces in the vocabulary.
  [[nodiscard]] std::size_t size() const noexcept { return entries_.size(); }

 private:
  struct Entry {
    std::size_t offset;  // of the spelling in spellings_
    std::size_t length;
    TokenId id;
  };
  struct TableSlot {
    std::uint32_t tag = 0;    // a part of the hash, so that other spellings need no look
    std::uint32_t index = 0;  // into entries_, plus one; 0: free
  };
  struct Merged {
    std::uint64_t pair = kFree;  // left id << 32 | right id
    std::uint32_t rank = 0;
    TokenId id = 0;
  };
  static constexpr std::uint64_t kFree = ~std::uint64_t{0};

  void add_vocab(const std::vector<VocabEntry>& vocab, std::string_view source);
  void add_merges(const std::vector<Merge>& merges, std::string_view source);
  void prefetch(const std::vector<Merge>& merges, std::size_t at) const noexcept;
  void map_bytes(const BpeSpec& spec, std::string_view source);
  [[nodiscard]] std::string_view spelling(const Entry& entry) const noexcept;
  [[nodiscard]] std::size_t home_slot(std::string_view spelling) const noexcept;
  [[nodiscard]] std::size_t home_slot(std::uint64_t pair) const noexcept;
  [[nodiscard]] std::size_t table_slot(std::string_view spelling) const noexcept;
  [[nodiscard]] std::size_t merge_slot(std::uint64_t pair) const noexcept;
  void encode_part(std::string_view piece, Workspace& workspace, std::vector<TokenId>& ids) const;
  void load_symbols(std::string_view piece, Workspace& workspace) const;
  void update_pair(Workspace& workspace, std::uint32_t position) const;
  void merge_all(Workspace& workspace) const;

  std::string spellings_;
  std::vector<Entry> entries_;
  // Both by open addressing, in memory of large pages: lookups go all over them.
  AlignedBuffer table_memory_, merges_memory_;
  std::span<TableSlot> table_;
  std::span<Merged> merges_;
  std::vector<TokenId> merge_results_;  // by rank
  std::array<TokenId, 256> byte_ids_{};
  bool ignore_merges_ = false;
  bool fuse_unknown_ = false;
  std::optional<TokenId> unknown_;
};

}  // namespace qgen
