#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <numeric>

#include "qgen/base/error.h"
#include "qgen/weights/checkpoint.h"

namespace {

/// Whether a view has the size that its shape says and the alignment of its elements; reads all of it.
bool sound(const qgen::StoredTensor& tensor) {
  auto bytes = static_cast<std::size_t>(qgen::block_bytes(tensor.dtype));
  for (const std::int64_t n : tensor.shape) bytes *= static_cast<std::size_t>(n);
  if (bytes != tensor.data.size()) return false;
  if (bytes == 0) return true;
  const auto add = [](unsigned sum, std::byte b) { return sum + std::to_integer<unsigned>(b); };
  volatile unsigned sum = std::accumulate(tensor.data.begin(), tensor.data.end(), 0u, add);
  static_cast<void>(sum);
  return reinterpret_cast<std::uintptr_t>(tensor.data.data()) % qgen::dtype_alignment(tensor.dtype) == 0;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const qgen::Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
    const qgen::Checkpoint checkpoint = qgen::Checkpoint::from_bytes(bytes, "input");
    std::size_t total = 0;
    for (const auto& [name, tensor] : checkpoint.tensors()) {
      if (!sound(tensor)) std::abort();
      total += tensor.data.size();
    }
    if (total > size) std::abort();
  } catch (const qgen::Error& error) {
    if (error.kind() != qgen::ErrorKind::file) std::abort();
  }
  return 0;
}
