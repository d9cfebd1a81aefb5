#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "weights/torch/pickle.h"

namespace qgen {

struct PickleMember {
  const PickleValue* key;
  const PickleValue* value;
};

/// The members of a dict or collections.OrderedDict in the order of the file; nothing where `value` is
/// neither.
std::optional<std::vector<PickleMember>> dict_members(const Pickle& pickle, const PickleValue& value);

/// The value of the text `key`, the last one where it occurs several times as in Python; nullptr where there
/// is none.
const PickleValue* find_member(const std::vector<PickleMember>& members, std::string_view key) noexcept;

}  // namespace qgen
