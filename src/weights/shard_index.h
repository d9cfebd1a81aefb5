#pragma once

#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qgen {

/// model.safetensors.index.json.
struct ShardIndex {
  std::set<std::string> shards;                                    ///< file names
  std::vector<std::pair<std::string, std::string>> tensor_shards;  ///< tensor and the shard that has it
};

/// `source` names the file in messages and is escaped already. Throws Error{file} for anything but a
/// weight_map of plain file names, naming the entry.
ShardIndex parse_shard_index(std::string_view json, const std::string& source);

}  // namespace qgen
