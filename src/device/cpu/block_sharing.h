#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <vector>

#include "device/cpu/share.h"

namespace qgen {

/// Shares blocks of work out among the members of a team. Everybody begins with an even share; who is done
/// takes blocks from the end of another's, so that nobody waits long where memory or processor serve one
/// member better than another.
class BlockSharing {
 public:
  explicit BlockSharing(int members) : members_(static_cast<std::size_t>(members)) {}

  /// Calls visit(Range of blocks) until all of [0, blocks) are taken, each by one member. Pieces get smaller
  /// towards the end, but not below `least` blocks, and shares of no more than that are left alone. To be
  /// called by every member with the same numbers, and not twice without a barrier between.
  template <class Visit>
  void run(int member, std::int64_t blocks, std::int64_t least, const Visit& visit) {
    Member& own = members_[static_cast<std::size_t>(member)];
    const std::size_t round = own.rounds++ % 2;
    own.taken[1 - round].store(0, std::memory_order_relaxed);  // behind a barrier from those who used it
    const auto size = static_cast<int>(members_.size());
    const bool alone = blocks <= least * size;
    if (alone) return visit(share(blocks, 1, member, size));
    for (int i = 0; i < size; ++i) {
      const int from = (member + i) % size;
      auto& taken = members_[static_cast<std::size_t>(from)].taken[round];
      const Range all = share(blocks, 1, from, size);
      for (;;) {
        const Range piece = take(taken, all, least, i == 0);
        if (piece.begin == piece.end) break;
        visit(piece);
      }
    }
  }

 private:
  /// Half of what is left of `all`, from its front or its back.
  static Range take(std::atomic<std::uint64_t>& taken, Range all, std::int64_t least, bool front) noexcept {
    std::uint64_t old = taken.load(std::memory_order_relaxed);
    for (;;) {
      const Range left{all.begin + static_cast<std::int64_t>(old >> 32),
                       all.end - static_cast<std::int64_t>(old & 0xffffffffu)};
      const std::int64_t rest = left.end - left.begin;
      if (rest <= 0) return {};
      const std::int64_t count = std::min(rest, std::max(rest / 2, least));
      const std::uint64_t more = static_cast<std::uint64_t>(count) << (front ? 32 : 0);
      if (!taken.compare_exchange_weak(old, old + more, std::memory_order_relaxed)) continue;
      return front ? Range{left.begin, left.begin + count} : Range{left.end - count, left.end};
    }
  }

  struct alignas(64) Member {
    /// Of its share in this round and the one before: blocks taken from the front, times 2^32, and from the
    /// back.
    std::array<std::atomic<std::uint64_t>, 2> taken{};
    std::size_t rounds = 0;
  };
  std::vector<Member> members_;
};

}  // namespace qgen
