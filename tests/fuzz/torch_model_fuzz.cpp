// A checkpoint of torch.save reads, with tensors whose views have the size that their shapes say, or gives an
// Error.

#include <cstddef>
#include <cstdint>
#include <numeric>

#include "parts.h"
#include "qgen/base/error.h"
#include "qgen/weights/torch_model.h"

namespace {

using qgen::fuzz::check;

void use(const qgen::StoredTensor& tensor) {
  auto bytes = static_cast<std::size_t>(qgen::block_bytes(tensor.dtype));
  for (const std::int64_t n : tensor.shape) bytes *= static_cast<std::size_t>(n);
  check(bytes == tensor.data.size());
  const auto add = [](unsigned sum, std::byte b) { return sum + std::to_integer<unsigned>(b); };
  volatile unsigned sum = std::accumulate(tensor.data.begin(), tensor.data.end(), 0u, add);
  static_cast<void>(sum);
  check(bytes == 0 ||
        reinterpret_cast<std::uintptr_t>(tensor.data.data()) % qgen::dtype_alignment(tensor.dtype) == 0);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const qgen::Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
  for (const std::int64_t heads : {0, 2}) {
    try {
      const qgen::TorchModel model = qgen::read_torch_model(bytes, "input", {.heads = heads});
      for (const auto& [name, tensor] : model.checkpoint.tensors()) use(tensor);
      check(model.config.num_attention_heads > 0 && model.config.head_dim > 0);
    } catch (const qgen::Error& error) {
      qgen::fuzz::check_shown(error.what());
    }
  }
  return 0;
}
