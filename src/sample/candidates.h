#pragma once

#include <cstddef>
#include <vector>

#include "qgen/base/bytes.h"

namespace qgen {

/// The tokens that may still be chosen. Never empty; every logit is finite.
struct Candidates {
  std::vector<TokenId> ids;   ///< ascending
  std::vector<float> logits;  ///< one for each id

  [[nodiscard]] std::size_t size() const noexcept { return ids.size(); }

  /// Drops each candidate for whose logit `keep` says false; asks in ascending order of ids.
  template <class Keep>
  void keep_if(Keep keep) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < ids.size(); ++i) {
      const TokenId id = ids[i];
      const float logit = logits[i];
      if (!keep(logit)) continue;
      ids[kept] = id;
      logits[kept] = logit;
      ++kept;
    }
    ids.resize(kept);
    logits.resize(kept);
  }
};

}  // namespace qgen
