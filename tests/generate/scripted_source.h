#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "generate/source.h"

namespace qgen {

/// A model that says its lines: after the n-th feed the best token is script[n] (the last one from then on).
/// Feeds in cuts of four tokens.
class ScriptedSource final : public Source {
 public:
  std::vector<std::string> pieces;  ///< bytes of each token
  std::vector<TokenId> script;
  std::set<TokenId> ends, specials;
  std::int64_t positions = 1000;                  ///< context()
  std::map<std::size_t, std::vector<float>> odd;  ///< logits of the n-th feed, where not the usual ones
  std::vector<bool> mask;                         ///< allowed()

  struct Feed {
    std::vector<TokenId> sequence;  ///< all that the model sees at this feed
    std::size_t fresh;              ///< how many of them are new
    Want want;
  };
  std::vector<Feed> feeds;
  std::size_t slides = 0;

  /// As a fresh session.
  void restart() {
    sequence_.clear();
    feeds.clear();
    slides = 0;
  }
  Logits feed(std::span<const TokenId> tokens, Want want,
              const std::function<bool(std::int64_t done)>& progress) override {
    constexpr std::size_t kCut = 4;
    for (std::size_t done = 0; done < tokens.size();) {
      const std::size_t next = std::min(tokens.size(), done + kCut);
      sequence_.insert(sequence_.end(), tokens.begin() + static_cast<std::ptrdiff_t>(done),
                       tokens.begin() + static_cast<std::ptrdiff_t>(next));
      done = next;
      if (progress && !progress(static_cast<std::int64_t>(done))) return {};
    }
    const std::size_t n = feeds.size();
    feeds.push_back({sequence_, tokens.size(), want});
    logits_.assign(pieces.size(), 0.0f);
    const TokenId line = script[std::min(n, script.size() - 1)];
    logits_[static_cast<std::size_t>(line)] = 20;
    if (odd.contains(n)) logits_ = odd[n];
    if (want != Want::best) return {logits_, -1, -1};
    for (std::size_t id = 0; id < logits_.size(); ++id) {
      if (!(logits_[id] < 1e30f)) return {{}, -1, static_cast<TokenId>(id)};
    }
    return {{}, line, -1};
  }
  void slide(std::int64_t keep) override {
    sequence_.erase(sequence_.begin() + keep);
    ++slides;
  }
  std::int64_t position() const override { return std::ssize(sequence_); }
  std::int64_t context() const override { return positions; }
  const std::vector<bool>& allowed() const override { return mask; }
  bool is_end(TokenId id) const override { return ends.contains(id); }
  bool is_special(TokenId id) const override { return specials.contains(id); }
  std::string_view bytes(TokenId id) const override { return pieces[static_cast<std::size_t>(id)]; }

 private:
  std::vector<TokenId> sequence_;
  std::vector<float> logits_;
};

}  // namespace qgen
