#pragma once

#include <algorithm>
#include <limits>
#include <map>
#include <new>
#include <set>
#include <string>
#include <vector>

#include "generate/source.h"
#include "qgen/base/error.h"

namespace qgen {

/// A model that says its lines: after the prompt, which is its first feed, and n tokens the best token is
/// script[n] (the last one from then on), whatever these tokens are. Feeds in cuts of four tokens.
class ScriptedSource : public Source {
 public:
  std::vector<std::string> pieces;  ///< bytes of each token
  std::vector<TokenId> script;
  std::set<TokenId> ends, specials;
  std::int64_t positions = 1000;                  ///< context()
  std::map<std::size_t, std::vector<float>> odd;  ///< logits after n tokens, where not the usual ones
  std::vector<bool> mask;                         ///< allowed()

  struct Feed {
    std::vector<TokenId> sequence;  ///< all that the model sees at this feed
    std::size_t fresh;              ///< how many of them are new
    Want want;
  };
  std::vector<Feed> feeds;
  std::size_t slides = 0;
  std::size_t most_rows = 100;         ///< Want::all for more is out of memory
  std::size_t most_positions = 10000;  ///< more of them are, too
  bool fails_as_container = false;     ///< how that is said

  /// As a fresh session.
  void restart() {
    sequence_.clear();
    feeds.clear();
    slides = 0;
  }
  Logits feed(std::span<const TokenId> tokens, Want want,
              const std::function<bool(std::int64_t done)>& progress) override {
    const bool too_many_rows = want == Want::all && tokens.size() > most_rows;
    if (too_many_rows || sequence_.size() + tokens.size() > most_positions) {
      if (fails_as_container) throw std::bad_alloc();
      throw Error(ErrorKind::memory, "no memory");
    }
    constexpr std::size_t kCut = 4;
    if (feeds.empty()) prompt_ = tokens.size();
    feeds.push_back({{}, tokens.size(), want});
    logits_.clear();
    for (std::size_t done = 0; done < tokens.size();) {
      sequence_.push_back(tokens[done++]);
      if (want == Want::all || done == tokens.size()) add_row();
      const bool cut = done % kCut == 0 || done == tokens.size();
      if (cut && progress && !progress(static_cast<std::int64_t>(done))) return {};
    }
    feeds.back().sequence = sequence_;
    return want == Want::best ? best_of_row() : Logits{logits_, -1, -1};
  }
  void rewind(std::int64_t position) override { sequence_.resize(static_cast<std::size_t>(position)); }
  void slide(std::int64_t keep) override {
    sequence_.erase(sequence_.begin() + keep);
    ++slides;
  }
  const std::vector<TokenId>& sequence() const { return sequence_; }
  std::int64_t position() const override { return std::ssize(sequence_); }
  std::int64_t context() const override { return positions; }
  const std::vector<bool>& allowed() const override { return mask; }
  bool is_end(TokenId id) const override { return ends.contains(id); }
  bool is_special(TokenId id) const override { return specials.contains(id); }
  std::string_view bytes(TokenId id) const override { return pieces[static_cast<std::size_t>(id)]; }

 protected:
  /// The logits after `sequence`, of whose tokens `reply` came after the prompt.
  virtual std::vector<float> row(const std::vector<TokenId>& /*sequence*/, std::size_t reply) const {
    if (const auto found = odd.find(reply); found != odd.end()) return found->second;
    std::vector<float> logits(pieces.size(), 0.0f);
    logits[static_cast<std::size_t>(script[std::min(reply, script.size() - 1)])] = 20;
    return logits;
  }

 private:
  void add_row() {
    const std::vector<float> logits = row(sequence_, sequence_.size() + slides - prompt_);
    logits_.insert(logits_.end(), logits.begin(), logits.end());
  }
  Logits best_of_row() const {
    Logits result;
    float best = -std::numeric_limits<float>::infinity();
    for (std::size_t id = 0; id < logits_.size(); ++id) {
      if (id >= mask.size() || !mask[id]) continue;
      if (!(logits_[id] < std::numeric_limits<float>::infinity())) return {{}, -1, static_cast<TokenId>(id)};
      if (logits_[id] > best) result.best = static_cast<TokenId>(id), best = logits_[id];
    }
    return result;
  }

  std::size_t prompt_ = 0;
  std::vector<TokenId> sequence_;
  std::vector<float> logits_;
};

}  // namespace qgen
