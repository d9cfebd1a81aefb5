#include <algorithm>
#include <utility>

#include "engine/engine_impl.h"
#include "qgen/engine/engine.h"

namespace qgen {
namespace {

/// Prompts are cut at multiples of this many positions, counted from their start, so that how a text was fed
/// does not change which tokens are computed together.
constexpr std::int64_t kCut = 512;
/// What is left after the last cut goes with it up to this many: so few take as long alone as many do.
constexpr std::int64_t kShortRest = 128;

/// Where the step that begins at `at` ends.
std::int64_t step_end(std::int64_t at, std::int64_t end) noexcept {
  const std::int64_t cut = (at / kCut + 1) * kCut;
  return end <= cut + kShortRest ? end : cut;
}

}  // namespace

struct Session::Impl {
  Impl(Engine::Impl* the_engine, bool recompute_all)
      : engine(the_engine), recompute(recompute_all), timeline(the_engine->executor->new_timeline()) {}

  /// Runs tokens [timeline->position(), end) of `tokens`; nothing where `progress` says stop. Rows of one cut
  /// stay in the executor's memory, those of several are gathered.
  Logits catch_up(Want want, const std::function<bool(std::int64_t)>& progress) {
    const auto end = std::ssize(tokens);
    const std::int64_t start = timeline->position();
    Logits logits;
    for (std::int64_t at = start; at < end;) {
      const std::int64_t next = step_end(at, end);
      const auto part = std::span<const TokenId>(tokens).subspan(static_cast<std::size_t>(at),
                                                                 static_cast<std::size_t>(next - at));
      const bool wanted = next == end || want == Want::all;
      const Slice slice{timeline.get(), part, wanted ? want : Want::none};
      const SliceResult result = engine->executor->run(std::span<const Slice>(&slice, 1)).front();
      logits = {result.logits, result.best, result.not_finite};
      if (want == Want::all && (at > start || next < end)) {
        rows.insert(rows.end(), result.logits.begin(), result.logits.end());
        logits.values = rows;
      }
      at = next;
      if (progress && !progress(at - start)) return {};
    }
    return logits;
  }

  Logits run(Want want, std::int64_t first, const std::function<bool(std::int64_t)>& progress) {
    rows.clear();
    if (recompute) timeline->truncate(0);
    const std::int64_t from = timeline->position();
    Logits logits = catch_up(want, progress);
    if (want == Want::all && !logits.values.empty()) {
      logits.values =
          logits.values.subspan(static_cast<std::size_t>((first - from) * engine->plan.dims.vocab));
    }
    return logits;
  }

  Engine::Impl* engine;
  bool recompute;
  std::unique_ptr<Timeline> timeline;
  std::vector<TokenId> tokens;
  std::vector<float> rows;
};

Session Engine::new_session(bool recompute) const {
  return Session(std::make_unique<Session::Impl>(impl_.get(), recompute));
}

Session::Session(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Session::~Session() = default;
Session::Session(Session&&) noexcept = default;
Session& Session::operator=(Session&&) noexcept = default;

std::int64_t Session::position() const noexcept {
  return std::ssize(impl_->tokens);
}
std::span<const TokenId> Session::tokens() const noexcept {
  return impl_->tokens;
}
std::size_t Session::cache_bytes() const noexcept {
  return impl_->timeline->bytes();
}

Logits Session::feed(std::span<const TokenId> tokens, Want want,
                     const std::function<bool(std::int64_t done)>& progress) {
  const std::int64_t first = position();
  impl_->tokens.insert(impl_->tokens.end(), tokens.begin(), tokens.end());
  try {
    return impl_->run(want, first, progress);
  } catch (...) {
    rewind(first);
    throw;
  }
}

void Session::rewind(std::int64_t position) {
  impl_->tokens.resize(static_cast<std::size_t>(position));
  impl_->timeline->truncate(std::min(position, impl_->timeline->position()));
}

Logits Session::slide(std::int64_t keep, std::int64_t count, Want want) {
  const auto first = impl_->tokens.begin() + keep;
  impl_->tokens.erase(first, first + count);
  impl_->timeline->truncate(std::min(keep, impl_->timeline->position()));
  if (want == Want::none) return {};  // the next feed catches up in the same pass
  return impl_->run(want, keep, {});
}

Session Session::fork() const {
  auto copy = std::make_unique<Impl>(impl_->engine, impl_->recompute);
  copy->timeline = impl_->timeline->fork();
  copy->tokens = impl_->tokens;
  return Session(std::move(copy));
}

}  // namespace qgen
