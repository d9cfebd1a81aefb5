#pragma once

#include <cstddef>
#include <functional>
#include <string>

#include "cli/quantize/source.h"

namespace qgen::cli {

/// Gives the rows of `tensor` as `type`, in order, in pieces of a few MiB, to `take`, which says whether to
/// go on. Computed by `threads` threads. Throws Error{file} naming the tensor where it has a value that is
/// not finite or that the type cannot hold.
void convert_rows(const SourceTensor& tensor, DType type, int threads,
                  const std::function<bool(Bytes)>& take);

}  // namespace qgen::cli
