#include "weights/gguf_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "qgen/base/error.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"
#include "weights/gguf_types.h"

// Layout, all numbers little-endian: "GGUF", version (32 bits), number of tensors and of metadata keys (64
// bits each); for each key its name, type and value; for each tensor its name, number of dimensions,
// dimensions innermost first, type and offset; then, from the next multiple of the alignment on, the data, to
// which offsets are relative. A string is its length (64 bits) and its bytes.

namespace qgen {
namespace {

constexpr std::uint64_t kMostKeys = 1 << 16;
constexpr std::uint64_t kMostTensors = 1 << 20;
constexpr std::uint32_t kMostDimensions = 4;
constexpr std::uint64_t kDefaultAlignment = 32, kLeastAlignment = 8, kMostAlignment = 1 << 16;
constexpr int kDeepestArray = 4;
// The least bytes that an entry takes: the length of its name and what stands beside it.
constexpr std::uint64_t kLeastKeyBytes = 8 + 4 + 1, kLeastTensorBytes = 8 + 4 + 4 + 8;
constexpr std::string_view kAlignmentKey = "general.alignment";

[[noreturn]] void fail(const std::string& source, const std::string& reason,
                       ErrorKind kind = ErrorKind::file) {
  throw Error(kind, source + ": " + reason);
}

std::string bytes_text(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " byte" : " bytes");
}

/// Bytes of one value; 0 for those whose size varies.
std::uint64_t fixed_bytes(GgufType type) {
  constexpr std::array<std::uint64_t, 13> kBytes{1, 1, 2, 2, 4, 4, 4, 1, 0, 0, 8, 8, 8};
  return kBytes[static_cast<std::size_t>(type)];
}

/// Reads the file from front to back; every step is checked against the bytes that are left.
class Cursor {
 public:
  Cursor(Bytes file, const std::string& source) : file_(file), source_(source) {}

  [[nodiscard]] std::uint64_t position() const noexcept { return at_; }
  [[nodiscard]] std::uint64_t left() const noexcept { return file_.size() - at_; }
  [[nodiscard]] const std::string& source() const noexcept { return source_; }
  [[nodiscard]] Bytes since(std::uint64_t begin) const { return file_.subspan(begin, at_ - begin); }

  Bytes take(std::uint64_t count, std::string_view what) {
    if (count > left()) {
      fail(source_, "truncated: " + bytes_text(count) + " of " + std::string(what) + " expected at byte " +
                        std::to_string(at_) + ", " + bytes_text(left()) + " found, " +
                        bytes_text(count - left()) + " missing");
    }
    const Bytes part = file_.subspan(at_, count);
    at_ += count;
    return part;
  }

  template <typename Integer>
  Integer integer(std::string_view what) {
    const Bytes bytes = take(sizeof(Integer), what);
    std::uint64_t value = 0;
    for (std::size_t i = sizeof(Integer); i-- > 0;)
      value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
    return static_cast<Integer>(value);
  }

  std::string_view string(std::string_view what) {
    const auto length = integer<std::uint64_t>(what);
    return as_text(take(length, what));
  }

  /// A number of things of which each takes at least `least` bytes.
  std::uint64_t count(std::uint64_t least, std::uint64_t most, std::string_view what) {
    const auto count = integer<std::uint64_t>("the number of " + std::string(what));
    if (count > most) {
      fail(source_, std::to_string(count) + " " + std::string(what) + " stated, at most " +
                        std::to_string(most) + " are read");
    }
    return count == 0 ? 0 : check_room(count, least, what);
  }

  /// Refuses a count that the bytes left cannot hold.
  std::uint64_t check_room(std::uint64_t count, std::uint64_t least, std::string_view what) const {
    if (count > left() / least) {
      fail(source_, "truncated, or damaged: " + std::to_string(count) + " " + std::string(what) +
                        " stated, " + bytes_text(left()) + " left");
    }
    return count;
  }

 private:
  Bytes file_;
  const std::string& source_;
  std::uint64_t at_ = 0;
};

void check_version(Cursor& cursor) {
  const auto version = cursor.integer<std::uint32_t>("the version");
  if (version == 2 || version == 3) return;
  const std::string& source = cursor.source();
  if (version != 0 && (version & 0xFFFF) == 0) {
    fail(source, "the byte order is big-endian, only little-endian GGUF files are read",
         ErrorKind::unsupported);
  }
  fail(source, "GGUF version " + std::to_string(version) + " is not supported, only versions 2 and 3 are",
       ErrorKind::unsupported);
}

void check_magic(Cursor& cursor) {
  const std::string_view magic = as_text(cursor.take(4, "the magic \"GGUF\""));
  if (magic == "GGUF") return;
  for (const std::string_view old : {"lmgg", "GGML", "tjgg", "GGJT", "fmgg", "GGMF", "algg", "GGLA"}) {
    if (magic != old) continue;
    fail(cursor.source(),
         "the magic is " + in_quotes(magic) + ", a format from before GGUF, which is not supported",
         ErrorKind::unsupported);
  }
  fail(cursor.source(), "not a GGUF file: the magic \"GGUF\" expected, " + in_quotes(magic) + " found");
}

/// Reads the metadata.
class MetadataReader {
 public:
  explicit MetadataReader(Cursor& cursor) : cursor_(cursor) {}

  GgufMetadata read(std::uint64_t keys) {
    GgufMetadata::Entries entries;
    for (std::uint64_t i = 0; i < keys; ++i) {
      key_ = cursor_.string("a metadata key");
      const GgufType type = read_type();
      if (!entries.emplace(key_, read_value(type, 0)).second) refuse("the key occurs twice");
    }
    return {std::move(entries), cursor_.source()};
  }

 private:
  [[noreturn]] void refuse(const std::string& reason, ErrorKind kind = ErrorKind::file) const {
    fail(cursor_.source(), shorten(key_) + ": " + reason, kind);
  }

  GgufType read_type() {
    const auto number = cursor_.integer<std::uint32_t>("a value type");
    if (number > static_cast<std::uint32_t>(GgufType::f64)) {
      refuse("value type " + std::to_string(number) + " is not known", ErrorKind::unsupported);
    }
    return static_cast<GgufType>(number);
  }

  GgufValue read_value(GgufType type, int depth) {
    const std::string what = "the value of " + shorten(key_);
    if (type == GgufType::string) return {.type = type, .bytes = as_bytes(cursor_.string(what))};
    if (type == GgufType::array) return read_array(depth + 1);
    return {.type = type, .bytes = cursor_.take(fixed_bytes(type), what)};
  }

  GgufValue read_array(int depth) {
    if (depth > kDeepestArray)
      refuse("arrays are nested more than " + std::to_string(kDeepestArray) + " deep");
    const GgufType element = read_type();
    const auto count = cursor_.integer<std::uint64_t>("the length of an array");
    const std::uint64_t size = fixed_bytes(element);
    const std::uint64_t least = element == GgufType::string ? 8 : element == GgufType::array ? 12 : size;
    cursor_.check_room(count, least, "elements of " + shorten(key_));
    const std::uint64_t begin = cursor_.position();
    if (size != 0) {
      cursor_.take(count * size, "an array");
    } else {
      for (std::uint64_t i = 0; i < count; ++i) read_value(element, depth);
    }
    return {.type = GgufType::array, .element = element, .count = count, .bytes = cursor_.since(begin)};
  }

  Cursor& cursor_;
  std::string_view key_;
};

std::uint64_t read_alignment(const GgufMetadata& metadata) {
  const std::int64_t stated =
      metadata.integer(kAlignmentKey, 0, std::int64_t{1} << 62).value_or(std::int64_t{kDefaultAlignment});
  const auto alignment = static_cast<std::uint64_t>(stated);
  if (!std::has_single_bit(alignment) || alignment < kLeastAlignment || alignment > kMostAlignment) {
    metadata.fail(kAlignmentKey, "a power of two from " + std::to_string(kLeastAlignment) + " to " +
                                     std::to_string(kMostAlignment) + " expected, " + std::to_string(stated) +
                                     " found");
  }
  return alignment;
}

/// What the file says of a tensor, its range not yet compared with the data.
struct Entry {
  std::string_view name;
  DType dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t offset, bytes;
};

class TensorReader {
 public:
  TensorReader(Cursor& cursor, std::uint64_t alignment) : cursor_(cursor), alignment_(alignment) {}

  Entry read() {
    Entry entry{.name = cursor_.string("a tensor's name"), .dtype = {}, .shape = {}, .offset = 0, .bytes = 0};
    name_ = entry.name;
    entry.shape = read_shape();
    const auto type = cursor_.integer<std::uint32_t>("a tensor's type");
    const std::optional<DType> dtype = dtype_from_gguf(type);
    if (!dtype) refuse("type " + gguf_type_text(type) + " is not supported", ErrorKind::unsupported);
    entry.dtype = *dtype;
    entry.offset = cursor_.integer<std::uint64_t>("a tensor's offset");
    if (entry.offset % alignment_ != 0) {
      refuse("offset " + std::to_string(entry.offset) + " is no multiple of the alignment " +
             std::to_string(alignment_));
    }
    entry.bytes = size_of(entry);
    return entry;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason, ErrorKind kind = ErrorKind::file) const {
    fail(cursor_.source(), "tensor " + shorten(name_) + ": " + reason, kind);
  }

  std::vector<std::int64_t> read_shape() {
    const auto dimensions = cursor_.integer<std::uint32_t>("a tensor's number of dimensions");
    if (dimensions > kMostDimensions) {
      refuse("at most " + std::to_string(kMostDimensions) + " dimensions expected, " +
             std::to_string(dimensions) + " found");
    }
    std::vector<std::int64_t> shape(dimensions);
    for (std::uint32_t i = dimensions; i-- > 0;) {  // innermost first
      const auto size = cursor_.integer<std::uint64_t>("a tensor's dimensions");
      if (size > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) {
        refuse("a dimension of " + std::to_string(size) + " is too large");
      }
      shape[i] = static_cast<std::int64_t>(size);
    }
    return shape;
  }

  std::uint64_t size_of(const Entry& entry) const {
    const std::string what =
        "shape " + shape_text(entry.shape) + " of " + std::string(dtype_name(entry.dtype));
    const std::int64_t block = block_elements(entry.dtype);
    const std::int64_t cols = entry.shape.empty() ? 1 : entry.shape.back();
    if (cols % block != 0) refuse(what + ": rows must be whole blocks of " + std::to_string(block));
    const std::optional<std::int64_t> bytes = tensor_bytes(entry.dtype, entry.shape);
    if (!bytes) refuse(what + " overflows 64 bits");
    return static_cast<std::uint64_t>(*bytes);
  }

  Cursor& cursor_;
  std::uint64_t alignment_;
  std::string_view name_;
};

void check_names(const std::vector<Entry>& entries, const std::string& source) {
  std::unordered_set<std::string_view> names;
  for (const Entry& entry : entries) {
    if (!names.insert(entry.name).second) fail(source, "tensor " + shorten(entry.name) + " occurs twice");
  }
}

/// No byte of the data may belong to two tensors. Gaps are allowed: they are how alignment is kept.
void check_overlap(std::vector<const Entry*> entries, const std::string& source) {
  std::erase_if(entries, [](const Entry* entry) { return entry->bytes == 0; });
  std::ranges::sort(entries, {}, [](const Entry* entry) { return entry->offset; });
  for (std::size_t i = 1; i < entries.size(); ++i) {
    const Entry& before = *entries[i - 1];
    if (entries[i]->offset - before.offset < before.bytes) {
      fail(source, "tensors " + shorten(before.name) + " and " + shorten(entries[i]->name) +
                       " share bytes of the data");
    }
  }
}

std::vector<GgufTensor> read_tensors(Cursor& cursor, std::uint64_t count, std::uint64_t alignment,
                                     Bytes file) {
  const std::string& source = cursor.source();
  std::vector<Entry> entries;
  entries.reserve(cursor.check_room(count, kLeastTensorBytes, "tensors"));
  for (std::uint64_t i = 0; i < count; ++i) entries.push_back(TensorReader(cursor, alignment).read());
  check_names(entries, source);
  const std::uint64_t data = (cursor.position() + alignment - 1) / alignment * alignment;
  const std::uint64_t size = file.size() - std::min<std::uint64_t>(data, file.size());
  std::vector<GgufTensor> tensors;
  std::vector<const Entry*> ranges;
  for (Entry& entry : entries) {
    if (entry.bytes > size || entry.offset > size - entry.bytes) {
      std::uint64_t end = 0;
      const bool fits = !__builtin_add_overflow(entry.offset, entry.bytes, &end);
      fail(source, "truncated: tensor " + shorten(entry.name) + " ends " +
                       (fits ? bytes_text(end) : "more than 2^64 bytes") + " into the data, which has " +
                       bytes_text(size) + (fits ? ", " + bytes_text(end - size) + " missing" : ""));
    }
    ranges.push_back(&entry);
    const Bytes bytes = entry.bytes == 0 ? Bytes() : file.subspan(data + entry.offset, entry.bytes);
    tensors.push_back({entry.name, {entry.dtype, entry.shape, bytes, source}});
  }
  check_overlap(std::move(ranges), source);
  return tensors;
}

}  // namespace

GgufContents read_gguf(Bytes file, const std::string& source, GgufPart part) {
  Cursor cursor(file, source);
  check_magic(cursor);
  check_version(cursor);
  const std::uint64_t tensors = cursor.count(kLeastTensorBytes, kMostTensors, "tensors");
  const std::uint64_t keys = cursor.count(kLeastKeyBytes, kMostKeys, "metadata keys");
  GgufContents contents;
  contents.metadata = MetadataReader(cursor).read(keys);
  const std::uint64_t alignment = read_alignment(contents.metadata);
  if (part == GgufPart::everything) contents.tensors = read_tensors(cursor, tensors, alignment, file);
  return contents;
}

}  // namespace qgen
