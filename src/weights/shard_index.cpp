#include "weights/shard_index.h"

#include "qgen/base/error.h"
#include "qgen/base/json.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"

namespace qgen {
namespace {

[[noreturn]] void fail(const std::string& source, const std::string& reason) {
  throw Error(ErrorKind::file, source + ": weight_map: " + reason);
}

/// A name of a file in the folder itself: with any path in it, a model could make us read files elsewhere.
bool is_plain_file_name(std::string_view name) {
  constexpr std::string_view kPathBytes("/\\\0", 3);
  constexpr std::size_t kLongestName = 255;  // of a file in any usual file system
  return !name.empty() && name.size() <= kLongestName && name != "." && name != ".." &&
         name.find_first_of(kPathBytes) == std::string_view::npos;
}

}  // namespace

ShardIndex parse_shard_index(std::string_view json, const std::string& source) {
  const Json root = parse_json(json, source);
  const Json* map = root.find("weight_map");
  const JsonObject* entries = map == nullptr ? nullptr : map->as_object();
  if (entries == nullptr) fail(source, "it is missing or no object");
  if (entries->empty()) fail(source, "it names no shard");

  ShardIndex index;
  for (const auto& [tensor, value] : *entries) {
    const std::string* shard = value.as_string();
    if (shard == nullptr || !is_plain_file_name(*shard)) {
      fail(source, "the name of a file in this folder expected for tensor " + shorten(tensor) + ", " +
                       (shard == nullptr ? "no string" : in_quotes(*shard)) + " found");
    }
    index.tensor_shards.emplace_back(tensor, *shard);
    index.shards.insert(*shard);
  }
  return index;
}

}  // namespace qgen
