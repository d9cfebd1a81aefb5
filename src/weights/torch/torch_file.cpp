#include "weights/torch/torch_file.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "qgen/base/error.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"

// Entries: FOLDER/data.pkl, the pickle; FOLDER/data/KEY for each storage; FOLDER/byteorder. A tensor in the
// pickle is a call of torch._utils._rebuild_tensor_v2(storage, offset, size, stride, requires_grad, hooks[,
// metadata]), a parameter a call of _rebuild_parameter(tensor, ...) around it. A storage is kept elsewhere,
// as the pickle says:
// ("storage", torch.FloatStorage, KEY, device, elements). Offsets and strides count elements. Several tensors
// may share a storage.

namespace qgen {
namespace {

constexpr std::string_view kPickleName = "/data.pkl";
/// More than any model's tensors have.
constexpr std::size_t kMostDimensions = 8;

constexpr std::array<std::pair<std::string_view, DType>, 10> kStorages{{{"FloatStorage", DType::f32},
                                                                        {"HalfStorage", DType::f16},
                                                                        {"BFloat16Storage", DType::bf16},
                                                                        {"DoubleStorage", DType::f64},
                                                                        {"CharStorage", DType::i8},
                                                                        {"ByteStorage", DType::u8},
                                                                        {"ShortStorage", DType::i16},
                                                                        {"IntStorage", DType::i32},
                                                                        {"LongStorage", DType::i64},
                                                                        {"BoolStorage", DType::boolean}}};

/// Other things that people have under such names.
void check_kind(Bytes file, const std::string& source) {
  const std::string_view text = as_text(file);
  if (text.starts_with("version https://git-lfs")) {
    throw Error(ErrorKind::file,
                source + ": this is a Git LFS pointer, not the file itself: run git lfs pull");
  }
  if (text.starts_with("GGUF")) {
    throw Error(ErrorKind::unsupported, source + ": this is a GGUF file: give it with -m");
  }
  if (text.starts_with('\x80')) {
    throw Error(ErrorKind::unsupported,
                source +
                    ": this is a bare pickle, the format of torch.save before version "
                    "1.6, which is not read: load it and save it again with "
                    "torch.save(torch.load(FILE, weights_only=True), FILE)");
  }
}

std::string find_folder(const ZipEntries& entries, const std::string& source) {
  for (const auto& [name, data] : entries) {
    const std::size_t slash = name.find('/');
    if (slash != std::string_view::npos && name.substr(slash) == kPickleName) {
      return std::string(name.substr(0, slash + 1));
    }
  }
  throw Error(ErrorKind::file, source + ": no file of torch.save: the archive has no entry FOLDER/data.pkl");
}

bool is_rebuild(const Pickle& pickle, const PickleValue& value, std::string_view name) noexcept {
  return pickle.is_call(value, "torch._utils", name);
}

/// size[i] * (elements of all that follow), where every stride is so or does not matter.
bool is_row_major(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides) noexcept {
  std::int64_t expected = 1;
  for (std::size_t i = shape.size(); i-- > 0;) {
    if (shape[i] != 1 && strides[i] != expected) return false;
    expected *= shape[i];
  }
  return true;
}

}  // namespace

/// A tensor's place in its storage, checked.
struct TorchFile::Layout {
  DType dtype = DType::f32;
  Bytes storage;
  std::size_t offset = 0;  ///< bytes
  std::size_t bytes = 0;   ///< that all elements take when they lie side by side
  std::vector<std::int64_t> shape, strides;
};

TorchFile::TorchFile(Bytes file, std::string source) : file_(file), source_(std::move(source)) {
  check_kind(file_, source_);
  entries_ = read_zip(file_, source_);
  folder_ = find_folder(entries_, source_);
  const auto order = entries_.find(folder_ + "byteorder");
  if (order != entries_.end() && as_text(order->second) != "little") {
    throw Error(ErrorKind::unsupported,
                source_ + ": byteorder: little expected, " + in_quotes(as_text(order->second)) + " found");
  }
  pickle_ = read_pickle(entries_.find(folder_ + "data.pkl")->second, source_ + ": data.pkl");
}

void TorchFile::refuse(std::string_view name, const std::string& reason) const {
  throw Error(ErrorKind::file, source_ + ": tensor " + shorten(name) + ": " + reason);
}

const PickleValue& TorchFile::unwrap(const PickleValue& value) const noexcept {
  const PickleValue* inner = &value;
  // Ends: what a call is made of was there before it.
  while (is_rebuild(pickle_, *inner, "_rebuild_parameter") ||
         is_rebuild(pickle_, *inner, "_rebuild_parameter_with_state")) {
    const std::vector<PickleId>& arguments = pickle_[inner->items[1]].items;
    if (arguments.empty()) break;
    inner = &pickle_[arguments.front()];
  }
  return *inner;
}

bool TorchFile::is_tensor(const PickleValue& value) const noexcept {
  return is_rebuild(pickle_, unwrap(value), "_rebuild_tensor_v2");
}

std::vector<std::int64_t> TorchFile::counts(const PickleValue& value, std::string_view name) const {
  if (value.kind != PickleKind::tuple || value.items.size() > kMostDimensions) {
    refuse(name, "size and stride: tuples of at most " + std::to_string(kMostDimensions) +
                     " integers expected, " + pickle_.describe(value) + " found");
  }
  std::vector<std::int64_t> counts;
  for (const PickleId id : value.items) {
    const PickleValue& item = pickle_[id];
    if (item.kind != PickleKind::integer || item.integer < 0) {
      refuse(name, "size and stride: integers from 0 on expected, " + pickle_.describe(item) + " found");
    }
    counts.push_back(item.integer);
  }
  return counts;
}

Bytes TorchFile::storage(const PickleValue& value, std::string_view name, DType& dtype) const {
  const PickleValue* id = value.kind == PickleKind::persistent ? &pickle_[value.items[0]] : nullptr;
  if (id == nullptr || id->kind != PickleKind::tuple || id->items.size() < 5) {
    refuse(name, "a storage expected, " + pickle_.describe(value) + " found");
  }
  const PickleValue &type = pickle_[id->items[1]], &key = pickle_[id->items[2]],
                    &count = pickle_[id->items[4]];
  const auto* known = std::ranges::find(kStorages, type.name, [](const auto& pair) { return pair.first; });
  if (type.kind != PickleKind::global || !type.text.starts_with("torch") || known == kStorages.end()) {
    refuse(name, "storages of type " + pickle_.describe(type) + " are not supported");
  }
  if (key.kind != PickleKind::text || count.kind != PickleKind::integer) {
    refuse(name, "its storage has no key or no size");
  }
  dtype = known->second;
  const auto entry = entries_.find(folder_ + "data/" + std::string(key.text));
  if (entry == entries_.end()) refuse(name, "its storage data/" + shorten(key.text) + " is missing");
  std::int64_t bytes = 0;
  if (count.integer < 0 || __builtin_mul_overflow(count.integer, block_bytes(dtype), &bytes) ||
      static_cast<std::uint64_t>(bytes) != entry->second.size()) {
    refuse(name, "its storage should have " + std::to_string(count.integer) + " elements of " +
                     std::string(dtype_name(dtype)) + ", data/" + shorten(key.text) + " has " +
                     std::to_string(entry->second.size()) + " bytes");
  }
  return entry->second;
}

TorchFile::Layout TorchFile::layout(const PickleValue& value, std::string_view name) const {
  const PickleValue& call = unwrap(value);
  if (!is_rebuild(pickle_, call, "_rebuild_tensor_v2")) {
    refuse(name, "a tensor expected, " + pickle_.describe(call) + " found");
  }
  const std::vector<PickleId>& arguments = pickle_[call.items[1]].items;
  if (arguments.size() < 4) refuse(name, "storage, offset, size and stride expected");
  Layout layout;
  layout.storage = storage(pickle_[arguments[0]], name, layout.dtype);
  layout.shape = counts(pickle_[arguments[2]], name);
  layout.strides = counts(pickle_[arguments[3]], name);
  const PickleValue& offset = pickle_[arguments[1]];
  if (layout.shape.size() != layout.strides.size() || offset.kind != PickleKind::integer ||
      offset.integer < 0) {
    refuse(name, "an offset from 0 on and a stride for each size expected");
  }
  const std::int64_t size = block_bytes(layout.dtype);
  const auto elements = static_cast<std::int64_t>(layout.storage.size()) / size;
  std::int64_t count = 1,
               end = offset.integer;  // one more than the index of the last element, if there is one
  bool overflow = __builtin_add_overflow(end, 1, &end);
  for (std::size_t i = 0; i < layout.shape.size(); ++i) {
    std::int64_t reach = 0;
    overflow |= __builtin_mul_overflow(count, layout.shape[i], &count);
    overflow |=
        __builtin_mul_overflow(std::max<std::int64_t>(layout.shape[i] - 1, 0), layout.strides[i], &reach);
    overflow |= __builtin_add_overflow(end, reach, &end);
  }
  const std::string what = "size " + shape_text(layout.shape) + ", stride " + shape_text(layout.strides) +
                           " and offset " + std::to_string(offset.integer);
  if (overflow) refuse(name, what + " overflow 64 bits");
  if (count == 0) return layout;
  if (end > elements) {
    refuse(name, what + " reach beyond its storage of " + std::to_string(elements) + " elements");
  }
  if (count > elements) {
    refuse(name, what + " repeat elements of its storage: expanded tensors are not supported");
  }
  layout.offset = static_cast<std::size_t>(offset.integer * size);
  layout.bytes = static_cast<std::size_t>(count * size);
  return layout;
}

StoredTensor TorchFile::tensor(const PickleValue& value, std::string_view name, TensorCopies& copies) const {
  Layout from = layout(value, name);
  StoredTensor tensor{from.dtype, from.shape, from.storage.subspan(from.offset), source_};
  const bool aligned =
      reinterpret_cast<std::uintptr_t>(tensor.data.data()) % dtype_alignment(tensor.dtype) == 0;
  if (from.bytes == 0 || (aligned && is_row_major(from.shape, from.strides))) {
    tensor.data = tensor.data.first(from.bytes);
    return tensor;
  }
  copies.bytes += from.bytes;
  if (copies.bytes > file_.size())
    refuse(name, "the views that have to be copied take more than the file itself");

  // Element by element, the last index running fastest.
  AlignedBuffer& copy = copies.buffers.emplace_back(from.bytes);
  const auto size = static_cast<std::size_t>(block_bytes(from.dtype));
  std::vector<std::int64_t> index(from.shape.size());
  for (std::size_t to = 0; to < from.bytes; to += size) {
    std::int64_t element = 0;
    for (std::size_t i = 0; i < index.size(); ++i) element += index[i] * from.strides[i];
    std::memcpy(copy.data() + to, tensor.data.data() + static_cast<std::size_t>(element) * size, size);
    for (std::size_t i = index.size(); i-- > 0 && ++index[i] == from.shape[i];) index[i] = 0;
  }
  tensor.data = Bytes(copy.data(), from.bytes);
  return tensor;
}

}  // namespace qgen
