#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "cli/options/values.h"

namespace qgen::cli {

/// The options of one command: declared once, read strictly, explained by --help. What is declared keeps
/// references to its targets, so the set must not outlive them.
class OptionSet {
 public:
  using Setter = std::function<void(const Given&)>;

  /// `introduction` is shown above the list of options and `ending` below it.
  OptionSet(std::string introduction, std::string ending);
  ~OptionSet();
  OptionSet(const OptionSet&) = delete;
  OptionSet& operator=(const OptionSet&) = delete;

  /// The options declared from now on are listed under `title`.
  void group(std::string title);
  /// `names` are all spellings with commas between them, the canonical long one first or second.
  void flag(const std::string& names, const std::string& help, bool& target);
  /// `set` is called for each time the option is given, in order.
  void value(const std::string& names, const std::string& placeholder, const std::string& help, Setter set);
  /// One more spelling of a declared option, for those that no convention covers ("-sys").
  void also(std::string spelling, const std::string& canonical);
  /// Receives texts without an option, each in turn.
  void positional(Setter set);

  /// False where --help was asked for; then nothing has been set. Throws Error{usage}.
  [[nodiscard]] bool read(std::span<const std::string> arguments);
  [[nodiscard]] std::string help() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace qgen::cli
