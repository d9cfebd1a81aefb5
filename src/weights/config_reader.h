#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/base/bytes.h"
#include "qgen/base/json.h"

namespace qgen {

/// Numbers that a key may have, and how a message calls them.
struct NumberRange {
  std::string_view text;
  double low, high;  ///< both allowed
};
inline constexpr NumberRange kPositive{"a positive number", std::numeric_limits<double>::denorm_min(),
                                       std::numeric_limits<double>::max()};
inline constexpr NumberRange kNotNegative{"a number not below 0", 0, std::numeric_limits<double>::max()};
inline constexpr NumberRange kUnit{"a number from 0 to 1", 0, 1};
inline constexpr NumberRange kBetweenZeroAndOne{"a number above 0 and below 1",
                                                std::numeric_limits<double>::denorm_min(),
                                                1 - std::numeric_limits<double>::epsilon() / 2};

/// Typed access to the members of an object. A member that is null counts as absent. Throws Error{file}
/// naming key, expected and found for a value of another type or out of range.
class ConfigReader {
 public:
  /// `object` must outlive the reader; `source` names the file in messages and is escaped already.
  ConfigReader(const Json& object, std::string source);

  [[nodiscard]] const Json* find(std::string_view key) const;
  [[nodiscard]] std::optional<bool> boolean(std::string_view key) const;
  /// `low` and `high` are both allowed.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key, std::int64_t low,
                                                    std::int64_t high) const;
  [[nodiscard]] std::optional<double> number(std::string_view key, const NumberRange& range) const;
  [[nodiscard]] std::optional<std::string> text(std::string_view key) const;
  [[nodiscard]] const Json* object(std::string_view key) const;
  [[nodiscard]] std::vector<std::string> texts(std::string_view key) const;
  /// A list; `low` and `high` are both allowed.
  [[nodiscard]] std::vector<std::int64_t> integers(std::string_view key, std::int64_t low,
                                                   std::int64_t high) const;
  /// One id or a list of ids.
  [[nodiscard]] std::vector<TokenId> token_ids(std::string_view key) const;

  [[noreturn]] void refuse(std::string_view key, std::string_view expected, const Json& found) const;
  [[nodiscard]] const std::string& source() const noexcept { return source_; }

 private:
  const Json& object_;
  std::string source_;
};

/// A value as a message shows it: numbers and (shortened) strings as they are, else the type's name.
std::string describe(const Json& value);

}  // namespace qgen
