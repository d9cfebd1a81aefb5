#include "weights/safetensors.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <tuple>

#include "qgen/base/error.h"
#include "qgen/base/json.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"

// Layout: the length N of the header (64 bits, little-endian), N bytes of JSON, then the data area. The
// header maps each tensor's name to dtype, shape and the range of the data area [begin, end) that holds it.
// The ranges must tile the data area: no byte has two owners, none has no owner.

namespace qgen {
namespace {

constexpr std::uint64_t kPrefix = 8;
/// More than any model's tensors have.
constexpr std::size_t kMostDimensions = 8;

[[noreturn]] void fail(const std::string& source, const std::string& reason) {
  throw Error(ErrorKind::file, source + ": " + reason);
}

std::string bytes_text(std::uint64_t count) {
  return std::to_string(count) + (count == 1 ? " byte" : " bytes");
}

std::uint64_t read_u64(Bytes bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = kPrefix; i-- > 0;) value = value << 8 | std::to_integer<std::uint64_t>(bytes[i]);
  return value;
}

/// What lies where a download should be when only the repository's pointer to it was fetched.
bool is_lfs_pointer(Bytes file) {
  return as_text(file).starts_with("version https://git-lfs");
}

/// Checks the length field against the file and gives the header's text.
std::string_view header_text(Bytes file, const std::string& source) {
  if (is_lfs_pointer(file)) fail(source, "this is a Git LFS pointer, not the file itself: run git lfs pull");
  if (file.size() < kPrefix) {
    fail(source, "truncated: 8 bytes of header length expected, " + bytes_text(file.size()) + " found, " +
                     bytes_text(kPrefix - file.size()) + " missing");
  }
  const std::uint64_t length = read_u64(file);
  const std::uint64_t available = file.size() - kPrefix;
  if (length > available) {
    fail(source, "truncated, or not a safetensors file: a header of " + bytes_text(length) + " expected, " +
                     bytes_text(available) + " found after the length, " + bytes_text(length - available) +
                     " missing");
  }
  if (length > kSafetensorsHeaderCap) {
    fail(source, "the header has " + bytes_text(length) + ", at most " + bytes_text(kSafetensorsHeaderCap) +
                     " are read");
  }
  const std::string_view text = as_text(file.subspan(kPrefix, length));
  if (!text.starts_with('{')) fail(source, "the header is no JSON object");
  return text;
}

/// One tensor of the header, its range not yet compared with the data area.
struct Entry {
  std::string name;
  DType dtype;
  std::vector<std::int64_t> shape;
  std::uint64_t begin, end;
};

/// Reads one member of the header.
class EntryReader {
 public:
  EntryReader(const std::string& source, const std::string& name, const Json& value)
      : source_(source), name_(name), value_(value) {}

  Entry read() const {
    if (value_.as_object() == nullptr)
      refuse("an object expected, " + std::string(value_.type_name()) + " found");
    Entry entry{name_, dtype(), {}, 0, 0};
    entry.shape = counts("shape");
    const std::vector<std::int64_t> range = counts("data_offsets");
    if (range.size() != 2 || range[0] > range[1]) {
      refuse("data_offsets: a begin and an end not below it expected, " + shape_text(range) + " found");
    }
    entry.begin = static_cast<std::uint64_t>(range[0]);
    entry.end = static_cast<std::uint64_t>(range[1]);
    check_size(entry);
    return entry;
  }

 private:
  [[noreturn]] void refuse(const std::string& reason) const {
    fail(source_, "tensor " + shorten(name_) + ": " + reason);
  }

  DType dtype() const {
    const Json* member = value_.find("dtype");
    const std::string* text = member == nullptr ? nullptr : member->as_string();
    if (text == nullptr) refuse("dtype is missing or no string");
    const std::optional<DType> dtype = dtype_from_safetensors(*text);
    if (!dtype) refuse("dtype " + shorten(*text) + " is not supported");
    return *dtype;
  }

  std::vector<std::int64_t> counts(std::string_view key) const {
    const Json* member = value_.find(key);
    const JsonArray* array = member == nullptr ? nullptr : member->as_array();
    if (array == nullptr) refuse(std::string(key) + " is missing or no list");
    if (array->size() > kMostDimensions) {
      refuse(std::string(key) + ": at most " + std::to_string(kMostDimensions) + " numbers expected, " +
             std::to_string(array->size()) + " found");
    }
    std::vector<std::int64_t> result;
    for (const Json& element : *array) {
      const std::optional<std::int64_t> count = element.as_int();
      if (!count || *count < 0) refuse(std::string(key) + ": integers from 0 to 2^63 - 1 expected");
      result.push_back(*count);
    }
    return result;
  }

  void check_size(const Entry& entry) const {
    const std::string what =
        "shape " + shape_text(entry.shape) + " of " + std::string(dtype_name(entry.dtype));
    const std::optional<std::int64_t> expected = tensor_bytes(entry.dtype, entry.shape);
    if (!expected) refuse(what + " overflows 64 bits");
    const std::uint64_t found = entry.end - entry.begin, taken = static_cast<std::uint64_t>(*expected);
    if (taken != found) {
      refuse(what + " takes " + bytes_text(taken) + ", its data_offsets span " + bytes_text(found));
    }
  }

  const std::string& source_;
  const std::string& name_;
  const Json& value_;
};

void check_metadata(const Json& value, const std::string& source) {
  const JsonObject* members = value.as_object();
  const bool texts = members != nullptr && std::ranges::all_of(*members, [](const auto& member) {
                       return member.second.as_string() != nullptr;
                     });
  if (!texts) fail(source, "__metadata__: an object of strings expected");
}

std::vector<Entry> read_header(std::string_view text, const std::string& source) {
  const Json header = parse_json(text, source);
  std::vector<Entry> entries;
  for (const auto& [name, value] : *header.as_object()) {
    if (name == "__metadata__") {
      check_metadata(value, source);
    } else {
      entries.push_back(EntryReader(source, name, value).read());
    }
  }
  return entries;
}

/// Sorts the ranges and proves that they tile the data area of `size` bytes.
void check_tiling(std::vector<Entry>& entries, std::uint64_t size, const std::string& source) {
  std::ranges::sort(entries, {}, [](const Entry& e) { return std::tie(e.begin, e.end, e.name); });
  const auto last = std::ranges::max_element(entries, {}, &Entry::end);
  if (last != entries.end() && last->end > size) {
    fail(source, "truncated: " + bytes_text(last->end) + " of data expected (up to tensor " +
                     shorten(last->name) + "), " + bytes_text(size) + " found, " +
                     bytes_text(last->end - size) + " missing");
  }
  std::uint64_t owned = 0;
  const Entry* previous = nullptr;
  for (const Entry& entry : entries) {
    if (entry.begin < owned) {
      fail(source,
           "tensors " + shorten(previous->name) + " and " + shorten(entry.name) + " share bytes of the data");
    }
    if (entry.begin > owned) {
      fail(source, bytes_text(entry.begin - owned) + " before tensor " + shorten(entry.name) +
                       " belong to no tensor");
    }
    owned = entry.end;
    previous = &entry;
  }
  if (owned < size) fail(source, bytes_text(size - owned) + " at the end belong to no tensor");
}

}  // namespace

std::vector<std::pair<std::string, StoredTensor>> read_safetensors(Bytes file, const std::string& source) {
  const std::string_view text = header_text(file, source);
  std::vector<Entry> entries = read_header(text, source);
  const Bytes data = file.subspan(kPrefix + text.size());
  check_tiling(entries, data.size(), source);

  std::vector<std::pair<std::string, StoredTensor>> tensors;
  tensors.reserve(entries.size());
  for (Entry& entry : entries) {
    const Bytes bytes = data.subspan(entry.begin, entry.end - entry.begin);
    tensors.emplace_back(std::move(entry.name),
                         StoredTensor{entry.dtype, std::move(entry.shape), bytes, source});
  }
  return tensors;
}

}  // namespace qgen
