#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>

#include "engine/gguf_vocabulary.h"
#include "parts.h"
#include "qgen/base/aligned_buffer.h"
#include "qgen/base/error.h"
#include "qgen/weights/gguf.h"

// The input is a GGUF file: its container, settings, tokenizer, and tensors under the names that models know.

namespace {

using qgen::fuzz::check;

template <typename Read>
void try_read(Read read) {
  try {
    read();
  } catch (const qgen::Error& error) {
    qgen::fuzz::check_shown(error.what());
  }
}

void check_tensor(const qgen::StoredTensor& tensor, qgen::Bytes file) {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < tensor.shape.size(); ++i) rows *= tensor.shape[i];
  const std::int64_t cols = tensor.shape.empty() ? 1 : tensor.shape.back();
  check(rows * qgen::row_bytes(tensor.dtype, cols) == static_cast<std::int64_t>(tensor.data.size()));
  if (tensor.data.empty()) return;
  const std::less_equal<> not_after;
  check(not_after(file.data(), tensor.data.data()));
  check(not_after(tensor.data.data() + tensor.data.size(), file.data() + file.size()));
  check(reinterpret_cast<std::uintptr_t>(tensor.data.data()) % qgen::dtype_alignment(tensor.dtype) == 0);
}

void check_metadata(const qgen::GgufMetadata& metadata) {
  for (const auto& [key, value] : metadata.entries()) {
    const std::string_view name = key;
    try_read([&] { (void)metadata.text(name); });
    try_read([&] { (void)metadata.texts(name); });
    try_read([&] { (void)metadata.integers(name); });
    try_read([&] { (void)metadata.integer(name, 0, 1000); });
    try_read([&] { (void)metadata.number(name, 0, 1); });
    try_read([&] { (void)metadata.boolean(name); });
  }
}

void read_file(qgen::Bytes file) {
  qgen::Gguf gguf = qgen::Gguf::from_bytes(file, "input");
  for (const qgen::GgufTensor& tensor : gguf.tensors()) check_tensor(tensor.tensor, file);
  check_metadata(gguf.metadata());
  try_read([&] {
    const qgen::ModelConfig config = qgen::gguf_model_config(gguf);
    check(config.head_dim > 0 && config.num_attention_heads % config.num_key_value_heads == 0);
  });
  try_read([&] { (void)qgen::gguf_generation_config(gguf.metadata()); });
  try_read([&] {
    const auto tokenizer = qgen::Tokenizer::from_parts(qgen::read_gguf_vocabulary(gguf.metadata()), "input");
    for (const qgen::TokenId id :
         tokenizer.encode("The 12 \xE2\x82\xAC <|im_end|>", {.parse_special = true})) {
      check(tokenizer.is_known(id));
    }
  });
  try_read([&] {
    const qgen::Checkpoint checkpoint = qgen::Checkpoint::from_gguf(std::move(gguf));
    for (const auto& [name, tensor] : checkpoint.tensors()) check_tensor(tensor, file);
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  qgen::AlignedBuffer file(size);
  if (size != 0) std::memcpy(file.data(), data, size);
  try_read([&] { read_file(qgen::Bytes(file.data(), size)); });
  return 0;
}
