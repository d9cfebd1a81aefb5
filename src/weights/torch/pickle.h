#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/base/bytes.h"

namespace qgen {

// What a pickle may hold. A checkpoint has some tens of values for each tensor, a vocabulary two for each
// piece and three for each merge: these are several times what the largest of them have, and bound memory to
// some hundreds of megabytes.

inline constexpr std::size_t kMostPickleValues = 2'000'000;
/// On the stack, in the memo and in collections together.
inline constexpr std::size_t kMostPickleReferences = 16'000'000;
/// Collections that are being built, one within the other.
inline constexpr std::size_t kMostPickleMarks = 1'000;

enum class PickleKind : std::uint8_t {
  none,
  boolean,
  integer,
  big_integer,  ///< one that 64 bits do not hold; its value is not kept
  number,
  text,
  bytes,
  tuple,
  list,
  set,
  dict,
  global,  ///< a class or function, by name only
  call,    ///< what would come of calling `items[0]` with the tuple `items[1]`; what was put into it follows
  persistent,  ///< what the writer calls `items[0]` and keeps elsewhere
};

/// A place in Pickle::values. Collections may hold each other, and themselves.
using PickleId = std::uint32_t;

struct PickleValue {
  PickleKind kind = PickleKind::none;
  std::int64_t integer = 0;       ///< boolean, integer
  double number = 0;              ///< number
  std::string_view text{};        ///< text and bytes as they are in the file; a global's module
  std::string_view name{};        ///< a global's name in its module
  std::vector<PickleId> items{};  ///< elements; a dict's keys and values in turn
};

/// A pickle as plain data. Nothing that it names is looked up, called or imported: globals are their names,
/// and what would be made by calls stays the description of a call. The state of objects (BUILD) is dropped.
struct Pickle {
  std::vector<PickleValue> values;
  PickleId root = 0;

  [[nodiscard]] const PickleValue& operator[](PickleId id) const noexcept { return values[id]; }
  /// Whether `value` is the global `module`.`name`.
  [[nodiscard]] static bool is_global(const PickleValue& value, std::string_view module,
                                      std::string_view name) noexcept;
  /// Whether `value` is a call of the global `module`.`name`.
  [[nodiscard]] bool is_call(const PickleValue& value, std::string_view module,
                             std::string_view name) const noexcept;
  /// "an integer", "an object of argparse.Namespace", ..., safe to print.
  [[nodiscard]] std::string describe(const PickleValue& value) const;
};

/// Reads a pickle of protocol 2 to 5 up to its STOP, without recursion; views point into `data`. Throws
/// Error{file} naming byte and opcode for whatever is truncated, damaged, beyond the limits above or outside
/// of the opcodes that such files have. `source` names the file in messages and is escaped already.
Pickle read_pickle(Bytes data, const std::string& source);

}  // namespace qgen
