#include "qgen/weights/checkpoint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <system_error>
#include <utility>

#include "qgen/base/error.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"
#include "qgen/weights/gguf.h"
#include "weights/safetensors.h"
#include "weights/shard_index.h"
#include "weights/stacked_experts.h"

namespace qgen {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSingle = "model.safetensors";
constexpr std::string_view kIndex = "model.safetensors.index.json";
constexpr std::size_t kCopyAlignment = 16;

std::string path_text(const fs::path& path) {
  return escape_control(path.string());
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::symlink_status(path, error).type() != fs::file_type::not_found;
}

void check_folder(const fs::path& folder) {
  std::error_code error;
  const fs::file_status status = fs::status(folder, error);
  if (fs::is_directory(status)) return;
  const std::string reason = error ? error.message() : "it is a file, a model folder was expected";
  throw Error(ErrorKind::file, "cannot read " + path_text(folder) + ": " + reason);
}

/// Names of files in `folder` that hold weights in a form that is not read.
std::vector<std::string> other_weight_files(const fs::path& folder) {
  constexpr std::array<std::string_view, 6> kEndings{".safetensors", ".gguf", ".bin", ".pth", ".pt", ".ckpt"};
  std::vector<std::string> names;
  std::error_code error;
  for (fs::directory_iterator it(folder, error), end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename().string();
    if (std::ranges::any_of(kEndings, [&](std::string_view ending) { return name.ends_with(ending); })) {
      names.push_back(escape_control(name));
    }
  }
  std::ranges::sort(names);
  return names;
}

[[noreturn]] void fail_without_weights(const fs::path& folder) {
  std::string message = path_text(folder) + ": neither " + std::string(kSingle) + " nor " +
                        std::string(kIndex) + " is in this folder";
  const std::vector<std::string> others = other_weight_files(folder);
  if (!others.empty()) {
    constexpr std::size_t kShown = 3;
    message += "; not supported:";
    for (std::size_t i = 0; i < std::min(others.size(), kShown); ++i)
      message += (i > 0 ? ", " : " ") + others[i];
    if (others.size() > kShown) message += " and " + std::to_string(others.size() - kShown) + " more";
  }
  throw Error(ErrorKind::file, message);
}

[[noreturn]] void refuse(const std::string& file, std::string_view tensor, const std::string& reason) {
  throw Error(ErrorKind::file, file + ": tensor " + shorten(tensor) + ": " + reason);
}

std::size_t misalignment(const StoredTensor& tensor) {
  return reinterpret_cast<std::uintptr_t>(tensor.data.data()) % dtype_alignment(tensor.dtype);
}

std::size_t copy_bytes(const StoredTensor& tensor) {
  if (misalignment(tensor) == 0) return 0;
  return (tensor.data.size() + kCopyAlignment - 1) / kCopyAlignment * kCopyAlignment;
}

}  // namespace

Checkpoint Checkpoint::from_folder(const fs::path& folder) {
  check_folder(folder);
  Checkpoint checkpoint;
  checkpoint.source_ = path_text(folder);
  if (is_there(folder / kSingle)) {
    checkpoint.files_.emplace_back(folder / kSingle);
    checkpoint.add(checkpoint.files_.back().bytes(), path_text(folder / kSingle));
    split_stacked_experts(checkpoint.tensors_);
    return checkpoint;
  }
  if (!is_there(folder / kIndex)) fail_without_weights(folder);

  const MappedFile index_file(folder / kIndex);
  const std::string index_name = path_text(folder / kIndex);
  const ShardIndex index = parse_shard_index(as_text(index_file.bytes()), index_name);
  for (const std::string& shard : index.shards) {
    checkpoint.files_.emplace_back(folder / shard);
    checkpoint.add(checkpoint.files_.back().bytes(), path_text(folder / shard));
  }
  for (const auto& [name, shard] : index.tensor_shards) {
    const StoredTensor* tensor = checkpoint.find(name);
    const std::string expected = path_text(folder / shard);
    if (tensor == nullptr || tensor->file != expected) {
      throw Error(ErrorKind::file, index_name + ": tensor " + shorten(name) + " should be in " + expected +
                                       ", it is in " + (tensor == nullptr ? "no shard" : tensor->file));
    }
  }
  split_stacked_experts(checkpoint.tensors_);
  return checkpoint;
}

Checkpoint Checkpoint::from_bytes(Bytes data, std::string_view source) {
  Checkpoint checkpoint;
  checkpoint.source_ = escape_control(source);
  checkpoint.add(data, checkpoint.source_);
  split_stacked_experts(checkpoint.tensors_);
  return checkpoint;
}

Checkpoint Checkpoint::assemble(Parts parts) {
  Checkpoint checkpoint;
  checkpoint.source_ = std::move(parts.source);
  checkpoint.files_ = std::move(parts.files);
  checkpoint.copies_ = std::move(parts.copies);
  checkpoint.tensors_ = std::move(parts.tensors);
  return checkpoint;
}

void Checkpoint::add(Bytes file, const std::string& source) {
  auto tensors = read_safetensors(file, source);
  std::size_t bytes = 0;
  for (const auto& [name, tensor] : tensors) bytes += copy_bytes(tensor);
  AlignedBuffer copies(bytes);
  std::byte* next = copies.data();
  for (auto& [name, tensor] : tensors) {
    if (const std::size_t size = copy_bytes(tensor); size != 0) {
      std::memcpy(next, tensor.data.data(), tensor.data.size());
      tensor.data = Bytes(next, tensor.data.size());
      next += size;
    }
    const auto [place, added] = tensors_.try_emplace(std::move(name), std::move(tensor));
    if (!added) {
      throw Error(ErrorKind::file,
                  "tensor " + shorten(place->first) + " is in both " + place->second.file + " and " + source);
    }
  }
  copies_.push_back(std::move(copies));
}

void Checkpoint::release(Bytes part) const noexcept {
  const std::less_equal<> not_after;
  for (const MappedFile& file : files_) {
    const Bytes all = file.bytes();
    if (not_after(all.data(), part.data()) && not_after(part.data() + part.size(), all.data() + all.size())) {
      file.release(part);
    }
  }
}

std::string Checkpoint::stamp() const {
  std::string stamp;
  for (const MappedFile& file : files_) {
    stamp += std::to_string(file.bytes().size()) + " bytes " + std::to_string(file.modified()) + '\n';
  }
  return stamp;
}

const StoredTensor* Checkpoint::find(std::string_view name) const {
  const auto found = tensors_.find(name);
  return found == tensors_.end() ? nullptr : &found->second;
}

TensorView Checkpoint::require(std::string_view wanted, std::initializer_list<std::int64_t> shape) const {
  const StoredTensor* tensor = find(wanted);
  const std::string name =
      (names_of_gguf_ ? gguf_name_of(wanted) : std::nullopt).value_or(std::string(wanted));
  if (tensor == nullptr) refuse(source_, name, "shape " + shape_text(shape) + " expected, but it is missing");
  if (!std::ranges::equal(tensor->shape, shape)) {
    refuse(tensor->file, name,
           "shape " + shape_text(shape) + " expected, " + shape_text(tensor->shape) + " found");
  }
  if (!is_weight_type(tensor->dtype)) {
    refuse(tensor->file, name,
           "a weight type expected (F32, F16, BF16 or blocks of GGUF), " +
               std::string(dtype_name(tensor->dtype)) + " found");
  }
  const std::int64_t cols = *(shape.end() - 1);
  if (cols % block_elements(tensor->dtype) != 0) {
    refuse(tensor->file, name,
           "rows of a multiple of " + std::to_string(block_elements(tensor->dtype)) + " expected for " +
               std::string(dtype_name(tensor->dtype)) + ", " + std::to_string(cols) + " found");
  }
  return {.data = tensor->data.data(),
          .dtype = tensor->dtype,
          .rows = shape.size() == 1 ? 1 : *shape.begin(),
          .cols = cols,
          .stride = row_bytes(tensor->dtype, cols)};
}

}  // namespace qgen
