#include "weights/torch/torch_dict.h"

#include <algorithm>

namespace qgen {

std::optional<std::vector<PickleMember>> dict_members(const Pickle& pickle, const PickleValue& value) {
  const bool ordered =
      pickle.is_call(value, "collections", "OrderedDict") && pickle[value.items[1]].items.empty();
  if (!ordered && value.kind != PickleKind::dict) return std::nullopt;
  std::vector<PickleMember> members;
  for (std::size_t i = ordered ? 2 : 0; i + 1 < value.items.size(); i += 2) {
    members.push_back({&pickle[value.items[i]], &pickle[value.items[i + 1]]});
  }
  return members;
}

const PickleValue* find_member(const std::vector<PickleMember>& members, std::string_view key) noexcept {
  const auto found = std::find_if(members.rbegin(), members.rend(), [&](const PickleMember& member) {
    return member.key->kind == PickleKind::text && member.key->text == key;
  });
  return found == members.rend() ? nullptr : found->value;
}

}  // namespace qgen
