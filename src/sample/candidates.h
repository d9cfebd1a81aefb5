#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "qgen/base/bytes.h"
#include "sample/softmax.h"

namespace qgen {

/// The tokens that may still be chosen, in ascending order of ids. Never empty once filled; every logit is
/// finite. A vocabulary is large and most of it is soon dropped, so that ids are not copied before.
class Candidates {
 public:
  /// Begins with these ids, which must outlive their use here; returns the logits to be set for them.
  std::span<float> begin(std::span<const TokenId> ids) {
    if (logits_.size() < ids.size()) logits_.resize(ids.size());
    ids_ = ids;
    return logits();
  }
  /// To be called when logits have changed.
  void find_top() noexcept { top_ = extremes(logits()).high; }

  [[nodiscard]] std::size_t size() const noexcept { return ids_.size(); }
  [[nodiscard]] std::span<const TokenId> ids() const noexcept { return ids_; }
  [[nodiscard]] std::span<const float> logits() const noexcept { return {logits_.data(), size()}; }
  [[nodiscard]] std::span<float> logits() noexcept { return {logits_.data(), size()}; }
  /// The largest logit.
  [[nodiscard]] float top() const noexcept { return top_; }

  /// Replaces each logit by a value that never falls where the logit grows.
  template <class Map>
  void map(const Map& map) noexcept {
    for (float& logit : logits()) logit = map(logit);
    top_ = map(top_);
  }

  /// Drops each candidate for whose logit `keep` says false, which it must not say of the best; asks in
  /// ascending order of ids.
  template <class Keep>
  void keep_if(Keep keep) {
    kept_ids_.resize(std::max(kept_ids_.size(), size()));
    ids_ = {kept_ids_.data(), copy_kept(0, size(), 0, keep)};
  }

  /// Drops what is below `limit`, which the best is not.
  void keep_from(float limit) {
    constexpr std::size_t kBlock = 64;
    kept_ids_.resize(std::max(kept_ids_.size(), size()));
    std::size_t kept = 0;
    for (std::size_t begin = 0; begin < size(); begin += kBlock) {
      const std::size_t end = std::min(size(), begin + kBlock);
      // Mostly there is nothing to keep, which is quickly seen.
      std::uint32_t any = 0;
      for (std::size_t i = begin; i < end; ++i) any |= logits_[i] >= limit ? 1u : 0u;
      if (any != 0) kept = copy_kept(begin, end, kept, [limit](float logit) { return logit >= limit; });
    }
    ids_ = {kept_ids_.data(), kept};
  }

 private:
  /// Moves what is kept of [begin, end) to `kept`; gives the end of it. No branch: it could not be predicted.
  template <class Keep>
  std::size_t copy_kept(std::size_t begin, std::size_t end, std::size_t kept, Keep keep) {
    for (std::size_t i = begin; i < end; ++i) {
      const TokenId id = ids_[i];
      const float logit = logits_[i];
      kept_ids_[kept] = id;
      logits_[kept] = logit;
      kept += static_cast<std::size_t>(keep(logit));
    }
    return kept;
  }

  std::span<const TokenId> ids_;
  std::vector<TokenId> kept_ids_;  // what ids_ views once something was dropped
  std::vector<float> logits_;
  float top_ = 0;
};

}  // namespace qgen
