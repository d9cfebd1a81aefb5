#include <string>
#include <utility>

#include "qgen/base/error.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"
#include "qgen/weights/checkpoint.h"
#include "qgen/weights/gguf.h"

namespace qgen {
namespace {

constexpr std::string_view kStack = ".mlp.experts.";
/// Far more than any model has; a tensor without elements could state any number.
constexpr std::int64_t kMostExperts = 4096;

[[noreturn]] void fail(const GgufTensor& tensor, const std::string& reason,
                       ErrorKind kind = ErrorKind::file) {
  throw Error(kind, tensor.tensor.file + ": tensor " + shorten(tensor.name) + ": " + reason);
}

/// What a file has beside the decoder's own tensors: read elsewhere, or of no use.
bool is_aside(std::string_view name) {
  return name == "rope_freqs.weight" || name.ends_with(".attn_rot_embd.weight");
}

}  // namespace

Checkpoint Checkpoint::from_gguf(Gguf&& gguf) {
  Checkpoint checkpoint;
  checkpoint.source_ = gguf.metadata().source();
  checkpoint.names_of_gguf_ = true;
  const auto insert = [&](std::string name, const GgufTensor& from, StoredTensor tensor) {
    const auto [place, added] = checkpoint.tensors_.try_emplace(std::move(name), std::move(tensor));
    if (!added) fail(from, "the tensor is also in " + place->second.file);
  };
  for (const GgufTensor& tensor : gguf.tensors_) {
    if (is_aside(tensor.name)) continue;
    const std::optional<std::string> name = name_from_gguf(tensor.name);
    if (!name) fail(tensor, "none of the models that can be run has it", ErrorKind::unsupported);
    const std::size_t stack = name->find(kStack);
    if (stack == std::string::npos) {
      insert(*name, tensor, tensor.tensor);
      continue;
    }
    // [E, rows, cols]: each expert's matrix is a tensor of its own.
    const std::vector<std::int64_t>& shape = tensor.tensor.shape;
    if (shape.size() != 3 || shape[0] < 1 || shape[0] > kMostExperts) {
      fail(tensor, "a stack of 1 to " + std::to_string(kMostExperts) + " matrices expected, shape " +
                       shape_text(shape) + " found");
    }
    const std::size_t bytes = tensor.tensor.data.size() / static_cast<std::size_t>(shape[0]);
    for (std::int64_t e = 0; e < shape[0]; ++e) {
      const std::size_t begin = static_cast<std::size_t>(e) * bytes;
      std::string expert = *name;
      expert.insert(stack + kStack.size(), std::to_string(e) + ".");
      insert(std::move(expert), tensor,
             {tensor.tensor.dtype,
              {shape[1], shape[2]},
              tensor.tensor.data.subspan(begin, bytes),
              tensor.tensor.file});
    }
  }
  checkpoint.files_ = std::move(gguf.files_);
  return checkpoint;
}

}  // namespace qgen
