#include "cli/options/option_set.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "cli/options/arguments.h"
#include "qgen/base/error.h"

namespace qgen::cli {
namespace {

constexpr std::size_t kNameWidth = 30;
constexpr std::size_t kHelpWidth = 80 - kNameWidth;

/// `text` broken into lines that fit beside the names.
std::string wrap(std::string text) {
  std::size_t line = 0;
  while (text.size() - line > kHelpWidth) {
    const std::size_t blank = text.rfind(' ', line + kHelpWidth);
    if (blank == std::string::npos || blank <= line) break;
    text[blank] = '\n';
    line = blank + 1;
  }
  return text;
}

/// Help with all names, the placeholder after them, and nothing that only a programmer needs.
class HelpFormatter final : public CLI::Formatter {
 public:
  HelpFormatter() { column_width(kNameWidth); }
  std::string make_option_name(const CLI::Option* option, bool /*positional*/) const override {
    std::string names;
    for (const std::string& name : option->get_snames()) names += (names.empty() ? "-" : ", -") + name;
    for (const std::string& name : option->get_lnames()) names += (names.empty() ? "--" : ", --") + name;
    return names;
  }
  std::string make_option_opts(const CLI::Option* option) const override {
    return option->get_type_name().empty() ? std::string() : " " + option->get_type_name();
  }
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override { return {}; }
};

std::string canonical_name(const CLI::Option& option) {
  return "--" + option.get_lnames().front();
}

}  // namespace

struct OptionSet::Impl {
  CLI::App app;
  std::string title;
  std::vector<OptionSpelling> extra;  // spellings that CLI11 cannot express
  std::vector<std::pair<CLI::Option*, Setter>> setters;
  Setter positional;
  bool help = false;

  CLI::Option* declare(CLI::Option* option) {
    option->group(title)->description(wrap(option->get_description()));
    return option;
  }

  [[nodiscard]] std::vector<OptionSpelling> spellings() {
    std::vector<OptionSpelling> result;
    for (const CLI::Option* option : app.get_options()) {
      if (option->get_lnames().empty()) continue;
      const std::string canonical = canonical_name(*option);
      const bool takes_value = option->get_items_expected_min() > 0;
      for (const std::string& name : option->get_lnames())
        result.push_back({"--" + name, canonical, takes_value});
      for (const std::string& name : option->get_snames())
        result.push_back({"-" + name, canonical, takes_value});
    }
    result.insert(result.end(), extra.begin(), extra.end());
    return result;
  }
};

OptionSet::OptionSet(std::string introduction, std::string ending) : impl_(std::make_unique<Impl>()) {
  CLI::App& app = impl_->app;
  app.set_help_flag();
  app.description(std::move(introduction));
  app.footer(std::move(ending));
  app.formatter(std::make_shared<HelpFormatter>());
}

OptionSet::~OptionSet() = default;

void OptionSet::group(std::string title) {
  impl_->title = std::move(title);
}

void OptionSet::flag(const std::string& names, const std::string& help, bool& target) {
  impl_->declare(
      impl_->app.add_flag(names, target, help)->multi_option_policy(CLI::MultiOptionPolicy::TakeLast));
}

void OptionSet::value(const std::string& names, const std::string& placeholder, const std::string& help,
                      Setter set) {
  const auto accept = [](const CLI::results_t& /*values*/) { return true; };
  CLI::Option* option = impl_->declare(impl_->app.add_option(names, accept, help));
  option->type_name(placeholder)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  impl_->setters.emplace_back(option, std::move(set));
}

void OptionSet::also(std::string spelling, const std::string& canonical) {
  const CLI::Option* option = impl_->app.get_option(canonical);
  impl_->extra.push_back({std::move(spelling), canonical, option->get_items_expected_min() > 0});
}

void OptionSet::positional(Setter set) {
  impl_->positional = std::move(set);
}

bool OptionSet::read(std::span<const std::string> arguments) {
  // CLI11 sees canonical names and separate values only: it would read "-sys" as "-s ys", does not equate '-'
  // and '_', and takes "--name=" for a missing value.
  std::vector<std::string> tokens;  // last first, as CLI11 wants them
  std::vector<Given> texts;
  std::map<std::string, std::vector<std::string>> typed;  // by canonical name
  for (Argument& argument : read_arguments(arguments, impl_->spellings())) {
    if (argument.canonical.empty()) {
      texts.push_back({"the text", std::move(argument.value)});
      continue;
    }
    const CLI::Option* option = impl_->app.get_option(argument.canonical);
    tokens.push_back(argument.canonical);
    if (option->get_items_expected_min() > 0) tokens.push_back(std::move(argument.value));
    typed[argument.canonical].push_back(std::move(argument.typed));
  }
  if (typed.contains("--help")) return false;
  std::ranges::reverse(tokens);
  try {
    impl_->app.parse(std::move(tokens));
  } catch (const CLI::Error& error) {
    throw Error(ErrorKind::usage, error.what());
  }
  for (const auto& [option, set] : impl_->setters) {
    const std::vector<std::string>& names = typed[canonical_name(*option)];
    for (std::size_t i = 0; i < option->count(); ++i) set({names[i], option->results()[i]});
  }
  for (const Given& text : texts) {
    if (!impl_->positional) throw Error(ErrorKind::usage, "unexpected argument '" + text.value + "'");
    impl_->positional(text);
  }
  return true;
}

std::string OptionSet::help() const {
  std::string text = impl_->app.help();
  // CLI11 puts two empty lines between groups.
  for (std::size_t at = 0; (at = text.find("\n\n\n", at)) != std::string::npos;) text.erase(at, 1);
  return text;
}

}  // namespace qgen::cli
