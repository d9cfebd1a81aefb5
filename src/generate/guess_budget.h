#pragma once

#include <algorithm>
#include <cstddef>

namespace qgen {

/// How much may be guessed, so that a text without repetition loses about one percent where memory limits
/// the steps: a guess has to be paid for by what right guesses have saved, or by a small allowance that each
/// token brings. In units of 1/128 of a step of the model; counted, not timed, so that the same text takes
/// the same steps.
class GuessBudget {
 public:
  [[nodiscard]] std::size_t affordable() const noexcept { return balance_ / kGuessCost; }
  void token() noexcept { add(kAllowance); }
  /// `guesses` <= affordable().
  void spend(std::size_t guesses) noexcept { balance_ -= guesses * kGuessCost; }
  void hit() noexcept { add(kStep); }

 private:
  static constexpr std::size_t kStep = 128;
  static constexpr std::size_t kAllowance = 1;
  static constexpr std::size_t kGuessCost = kStep / 8;  // one more row then costs rather less
  static constexpr std::size_t kMost = 2 * kStep;       // good times do not pay for long bad ones

  void add(std::size_t units) noexcept { balance_ = std::min(balance_ + units, kMost); }

  std::size_t balance_ = kStep;
};

}  // namespace qgen
