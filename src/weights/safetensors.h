#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "qgen/base/bytes.h"
#include "qgen/weights/checkpoint.h"

namespace qgen {

/// The longest header that is read, in bytes; the format's reference implementation stops there too.
inline constexpr std::uint64_t kSafetensorsHeaderCap = 100'000'000;

/// The tensors of one safetensors file in the order of their data; views may have any alignment. `source`
/// names the file in messages and is escaped already. Throws Error{file} naming file and tensor.
std::vector<std::pair<std::string, StoredTensor>> read_safetensors(Bytes file, const std::string& source);

}  // namespace qgen
