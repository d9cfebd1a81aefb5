#pragma once

#include <string>
#include <vector>

#include "qgen/base/bytes.h"
#include "qgen/weights/gguf.h"

namespace qgen {

/// One file's contents; both refer to its bytes.
struct GgufContents {
  GgufMetadata metadata;
  std::vector<GgufTensor> tensors;  ///< in the order of the file
};

enum class GgufPart { metadata, everything };

/// Reads one file, or only its metadata. `source` names it in messages and is escaped already. Throws as
/// Gguf::open does.
GgufContents read_gguf(Bytes file, const std::string& source, GgufPart part);

}  // namespace qgen
