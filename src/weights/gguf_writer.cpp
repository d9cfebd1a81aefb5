#include "qgen/weights/gguf_writer.h"

#include <algorithm>
#include <array>
#include <stdexcept>

#include "weights/gguf_types.h"

namespace qgen {
namespace {

constexpr std::uint32_t kVersion = 3;
constexpr std::uint64_t kAlignment = 32;

std::uint64_t aligned(std::uint64_t offset) {
  return (offset + kAlignment - 1) / kAlignment * kAlignment;
}

template <typename T>
void append(std::string& out, T number) {
  out.append(reinterpret_cast<const char*>(&number), sizeof number);
}

void append_text(std::string& out, std::string_view text) {
  append(out, std::uint64_t{text.size()});
  out.append(text);
}

}  // namespace

void GgufHeader::put(std::string_view key, GgufType type, std::string_view encoded) {
  std::string value;
  append(value, static_cast<std::uint32_t>(type));
  value.append(encoded);
  const auto known = std::ranges::find(entries_, key, [](const auto& entry) { return entry.first; });
  if (known != entries_.end()) {
    known->second = std::move(value);
  } else {
    entries_.emplace_back(key, std::move(value));
  }
}

void GgufHeader::put_array(std::string_view key, GgufType element, std::uint64_t count,
                           std::string_view encoded) {
  std::string value;
  append(value, static_cast<std::uint32_t>(element));
  append(value, count);
  value.append(encoded);
  put(key, GgufType::array, value);
}

void GgufHeader::add(std::string_view key, std::string_view text) {
  std::string value;
  append_text(value, text);
  put(key, GgufType::string, value);
}

void GgufHeader::add(std::string_view key, const std::vector<std::string>& texts) {
  std::string values;
  for (const std::string& text : texts) append_text(values, text);
  put_array(key, GgufType::string, texts.size(), values);
}

void GgufHeader::add(std::string_view key, const GgufValue& value) {
  switch (value.type) {
    case GgufType::array:
      return put_array(key, value.element, value.count, as_text(value.bytes));
    case GgufType::string:
      return add(key, as_text(value.bytes));
    default:
      return put(key, value.type, as_text(value.bytes));
  }
}

void GgufHeader::add_tensor(std::string_view name, DType dtype, std::vector<std::int64_t> shape) {
  std::int64_t rows = 1;
  for (std::size_t i = 0; i + 1 < shape.size(); ++i) rows *= shape[i];
  const auto bytes = static_cast<std::uint64_t>(rows * row_bytes(dtype, shape.empty() ? 1 : shape.back()));
  tensors_.push_back({std::string(name), dtype, std::move(shape), bytes});
}

std::string GgufHeader::encode() const {
  std::string out = "GGUF";
  append(out, kVersion);
  append(out, std::uint64_t{tensors_.size()});
  append(out, std::uint64_t{entries_.size()});
  for (const auto& [key, value] : entries_) {
    append_text(out, key);
    out += value;
  }
  std::uint64_t offset = 0;
  for (const Tensor& tensor : tensors_) {
    append_text(out, tensor.name);
    append(out, static_cast<std::uint32_t>(tensor.shape.size()));
    // The file has the innermost dimension first.
    for (auto size = tensor.shape.rbegin(); size != tensor.shape.rend(); ++size) {
      append(out, static_cast<std::uint64_t>(*size));
    }
    append(out, gguf_number_of(tensor.dtype).value());
    append(out, offset);
    offset += aligned(tensor.bytes);
  }
  return out;
}

GgufWriter::GgufWriter(const std::filesystem::path& path, const GgufHeader& header) : file_(path) {
  for (const GgufHeader::Tensor& tensor : header.tensors_) bytes_.push_back(tensor.bytes);
  file_.write(as_bytes(header.encode()));
  pad();
}

void GgufWriter::pad() {
  constexpr std::array<std::byte, kAlignment> kZeros{};
  file_.write(Bytes(kZeros).first(aligned(file_.size()) - file_.size()));
}

void GgufWriter::write(Bytes part) {
  if (part.empty()) return;
  while (tensor_ < bytes_.size() && bytes_[tensor_] == 0) ++tensor_;
  if (tensor_ == bytes_.size() || part.size() > bytes_[tensor_] - written_) {
    throw std::logic_error("more data than the header of the GGUF file says");
  }
  file_.write(part);
  written_ += part.size();
  if (written_ < bytes_[tensor_]) return;
  ++tensor_;
  written_ = 0;
  pad();
}

void GgufWriter::finish() {
  while (tensor_ < bytes_.size() && bytes_[tensor_] == 0) ++tensor_;
  if (tensor_ < bytes_.size()) throw std::logic_error("less data than the header of the GGUF file says");
  file_.commit();
}

}  // namespace qgen
