#include "generate/stepper.h"

#include <algorithm>
#include <limits>
#include <new>

#include "qgen/base/error.h"

namespace qgen {
namespace {

/// What Want::best gives, from a row of logits.
Logits best_of(std::span<const float> row, const std::vector<bool>& allowed) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  Logits result;
  float best = -kInfinity;
  const std::size_t ids = std::min(row.size(), allowed.size());
  for (std::size_t id = 0; id < ids; ++id) {
    if (row[id] <= best || !allowed[id]) continue;  // neither is true of most: NaN compares false
    if (!(row[id] < kInfinity)) return {{}, -1, static_cast<TokenId>(id)};
    best = row[id];
    result.best = static_cast<TokenId>(id);
  }
  return result;
}

}  // namespace

Stepper::Stepper(Source& source, Want want, const GenerateOptions& options)
    : source_(source), want_(want), options_(options), most_guesses_(std::min(options.lookup, kMostLookup)) {}

Logits Stepper::prefill(std::span<const TokenId> prompt,
                        const std::function<bool(std::int64_t done)>& progress) {
  for (const TokenId id : prompt) remember(id);
  return source_.feed(prompt, want_, progress);
}

/// Guessing must not take memory that the text needs.
void Stepper::remember(TokenId id) {
  if (most_guesses_ == 0) return;
  try {
    lookup_.add(id);
  } catch (const std::bad_alloc&) {
    most_guesses_ = 0;
  }
}

Logits Stepper::next(TokenId id, std::int64_t room) {
  remember(id);
  budget_.token();
  if (ahead() > 0 && run_[static_cast<std::size_t>(row_ + 1)] == id) {
    ++row_;
    ++counts_.accepted;
    budget_.hit();
    return current_row();
  }
  settle();
  if (source_.position() >= source_.context()) {
    source_.slide(std::min(options_.keep, source_.position() - 1));
  }
  run_.assign(1, id);
  row_ = 0;
  guess(room);
  if (run_.size() > 1 && run_ahead()) return current_row();
  return source_.feed(run_, want_, {});
}

/// Adds to the step what may follow its token, as far as it is worth the try and can be of use.
void Stepper::guess(std::int64_t room) {
  const std::int64_t positions = source_.context() - source_.position() - 1;
  const std::int64_t most =
      std::min({most_guesses_, room - 1, positions, static_cast<std::int64_t>(budget_.affordable())});
  if (most <= 0) return;
  lookup_.find(static_cast<std::size_t>(most), guess_);
  const auto end = std::ranges::find_if(guess_, [this](TokenId id) { return source_.is_end(id); });
  run_.insert(run_.end(), guess_.begin(), end);
}

/// False where memory suffices for a token alone at best; then nothing is guessed any more.
bool Stepper::run_ahead() {
  try {
    logits_ = source_.feed(run_, Want::all, {}).values;
  } catch (const std::bad_alloc&) {
    return give_up();
  } catch (const Error&) {
    return give_up();
  }
  budget_.spend(run_.size() - 1);
  counts_.proposed += std::ssize(run_) - 1;
  return true;
}

bool Stepper::give_up() {
  most_guesses_ = 0;
  run_.resize(1);
  return false;
}

Logits Stepper::current_row() const {
  const std::size_t width = logits_.size() / run_.size();
  const auto row = logits_.subspan(static_cast<std::size_t>(row_) * width, width);
  return want_ == Want::best ? best_of(row, source_.allowed()) : Logits{row, -1, -1};
}

void Stepper::settle() {
  if (ahead() <= 0) return;
  source_.rewind(position());
  run_.resize(static_cast<std::size_t>(row_ + 1));
}

std::int64_t Stepper::position() const {
  return source_.position() - std::max<std::int64_t>(ahead(), 0);
}

}  // namespace qgen
