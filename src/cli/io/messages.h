#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "qgen/base/log.h"

namespace qgen::cli {

enum class Verbosity { quiet, normal, verbose };

/// Standard error: what a person should know, never part of the reply. Every line is made safe to print.
class Messages {
 public:
  explicit Messages(Verbosity verbosity);
  ~Messages();
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  [[nodiscard]] bool is_terminal() const noexcept { return terminal_; }
  [[nodiscard]] bool is_verbose() const noexcept { return verbosity_ == Verbosity::verbose; }

  void error(std::string_view text) const { log_.error(text); }
  void note(std::string_view text) const { log_.warning(text); }    ///< unless quiet
  void detail(std::string_view text) const { log_.verbose(text); }  ///< only where verbose

  /// A line that lasts until the next message or clear_progress(); only on a terminal.
  void progress(std::string_view text);
  void clear_progress() const;

  /// For the rooms below; must not outlive this object.
  [[nodiscard]] const Log& log() const noexcept { return log_; }

 private:
  Verbosity verbosity_;
  bool terminal_;
  mutable std::size_t shown_ = 0;  // characters of the progress line on the screen
  Log log_;
};

}  // namespace qgen::cli
