#include "cli/options/arguments.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

#include "qgen/base/error.h"
#include "qgen/base/utf8.h"

namespace qgen::cli {
namespace {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t replaced = diagonal + (a[i] == b[j] ? 0 : 1);
      diagonal = std::exchange(row[j + 1], std::min({row[j] + 1, row[j + 1] + 1, replaced}));
    }
  }
  return row.back();
}

/// Reads arguments from left to right.
class Reader {
 public:
  Reader(std::span<const std::string> arguments, std::span<const OptionSpelling> options)
      : arguments_(arguments), options_(options) {}

  std::vector<Argument> read() {
    bool only_texts = false;
    while (next_ < arguments_.size()) {
      const std::string& argument = arguments_[next_++];
      if (only_texts || argument.size() < 2 || argument[0] != '-') {
        result_.push_back({{}, {}, argument});
      } else if (argument == "--") {
        only_texts = true;
      } else if (argument[1] == '-') {
        read_long(argument);
      } else {
        read_short(argument);
      }
    }
    return std::move(result_);
  }

 private:
  [[nodiscard]] const OptionSpelling* find(std::string_view spelling) const {
    const auto found = std::ranges::find(options_, spelling, &OptionSpelling::spelling);
    return found == options_.end() ? nullptr : &*found;
  }

  [[noreturn]] void unknown(std::string_view typed) const {
    std::string message = "unknown option " + escape_control(typed);
    const std::string nearest = nearest_spelling(typed, options_);
    if (!nearest.empty()) message += "; the nearest known one is " + nearest;
    if (typed.find(' ') != std::string_view::npos) message += " (write -- before a text that begins with -)";
    throw Error(ErrorKind::usage, message);
  }

  void add_with_next_value(const OptionSpelling& option, std::string typed) {
    if (next_ == arguments_.size()) {
      throw Error(ErrorKind::usage, typed + " needs a value");
    }
    result_.push_back({option.canonical, std::move(typed), arguments_[next_++]});
  }

  void read_long(const std::string& argument) {
    const std::size_t equals = argument.find('=');
    std::string name = argument.substr(0, equals);
    const std::string typed = name;
    std::ranges::replace(name, '_', '-');
    const OptionSpelling* option = find(name);
    if (option == nullptr) unknown(typed);
    if (equals == std::string::npos) {
      if (option->takes_value) return add_with_next_value(*option, typed);
      result_.push_back({option->canonical, typed, {}});
      return;
    }
    if (!option->takes_value) throw Error(ErrorKind::usage, typed + " takes no value");
    result_.push_back({option->canonical, typed, argument.substr(equals + 1)});
  }

  /// "-x", "-xVALUE", "-abc" for flags a, b, c, and whole words with one dash such as "-sys".
  void read_short(const std::string& argument) {
    if (const OptionSpelling* word = find(argument)) {
      if (word->takes_value) return add_with_next_value(*word, argument);
      result_.push_back({word->canonical, argument, {}});
      return;
    }
    for (std::size_t i = 1; i < argument.size(); ++i) {
      const std::string spelling{'-', argument[i]};
      const OptionSpelling* option = find(spelling);
      if (option == nullptr) unknown(i == 1 ? argument : spelling);
      if (!option->takes_value) {
        result_.push_back({option->canonical, spelling, {}});
        continue;
      }
      if (i + 1 == argument.size()) return add_with_next_value(*option, spelling);
      result_.push_back({option->canonical, spelling, argument.substr(i + 1)});
      return;
    }
  }

  std::span<const std::string> arguments_;
  std::span<const OptionSpelling> options_;
  std::size_t next_ = 0;
  std::vector<Argument> result_;
};

}  // namespace

std::vector<Argument> read_arguments(std::span<const std::string> arguments,
                                     std::span<const OptionSpelling> options) {
  return Reader(arguments, options).read();
}

std::string nearest_spelling(std::string_view typed, std::span<const OptionSpelling> options) {
  // Nothing that is longer than this is a slip of the finger, and the distance takes quadratic time.
  std::string name(typed.substr(0, std::min<std::size_t>(typed.find('='), 64)));
  std::ranges::replace(name, '_', '-');
  const OptionSpelling* nearest = nullptr;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const OptionSpelling& option : options) {
    const std::size_t distance = edit_distance(name, option.spelling);
    if (distance < least) {
      least = distance;
      nearest = &option;
    }
  }
  return nearest == nullptr ? std::string() : nearest->spelling;
}

}  // namespace qgen::cli
