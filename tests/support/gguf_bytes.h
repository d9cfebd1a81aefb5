#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/base/aligned_buffer.h"
#include "qgen/base/bytes.h"
#include "qgen/weights/gguf.h"

namespace qgen::test {

template <typename Integer>
std::string little_endian(Integer value) {
  std::string bytes;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    bytes += static_cast<char>(static_cast<std::uint64_t>(value) >> (8 * i) & 0xFF);
  }
  return bytes;
}

inline std::string gguf_string(std::string_view text) {
  return little_endian(std::uint64_t{text.size()}).append(text);
}

/// Puts a GGUF file together, right or wrong.
class GgufWriter {
 public:
  /// A key with the bytes of its value as they are.
  GgufWriter& raw(std::string_view key, GgufType type, std::string_view value) {
    keys_ += gguf_string(key) + little_endian(static_cast<std::uint32_t>(type));
    keys_ += value;
    ++key_count_;
    return *this;
  }
  GgufWriter& u32(std::string_view key, std::uint32_t value) {
    return raw(key, GgufType::u32, little_endian(value));
  }
  GgufWriter& f32(std::string_view key, float value) {
    return raw(key, GgufType::f32, little_endian(std::bit_cast<std::uint32_t>(value)));
  }
  GgufWriter& boolean(std::string_view key, bool value) {
    return raw(key, GgufType::boolean, std::string(1, value ? '\1' : '\0'));
  }
  GgufWriter& text(std::string_view key, std::string_view value) {
    return raw(key, GgufType::string, gguf_string(value));
  }
  GgufWriter& array(std::string_view key, GgufType element, std::uint64_t count, std::string_view elements) {
    return raw(
        key, GgufType::array,
        little_endian(static_cast<std::uint32_t>(element)) + little_endian(count) + std::string(elements));
  }
  GgufWriter& texts(std::string_view key, const std::vector<std::string>& values) {
    std::string elements;
    for (const std::string& value : values) elements += gguf_string(value);
    return array(key, GgufType::string, values.size(), elements);
  }
  GgufWriter& i32s(std::string_view key, const std::vector<std::int32_t>& values) {
    std::string elements;
    for (const std::int32_t value : values) elements += little_endian(value);
    return array(key, GgufType::i32, values.size(), elements);
  }

  /// An entry of the tensor table; `dims` innermost first. Adds no data.
  GgufWriter& tensor_entry(std::string_view name, const std::vector<std::uint64_t>& dims, std::uint32_t type,
                           std::uint64_t offset) {
    tensors_ += gguf_string(name) + little_endian(static_cast<std::uint32_t>(dims.size()));
    for (const std::uint64_t size : dims) tensors_ += little_endian(size);
    tensors_ += little_endian(type) + little_endian(offset);
    ++tensor_count_;
    return *this;
  }
  /// A tensor of F32 zeros, behind the one before it.
  GgufWriter& zeros(std::string_view name, const std::vector<std::uint64_t>& dims) {
    std::uint64_t bytes = 4;
    for (const std::uint64_t size : dims) bytes *= size;
    tensor_entry(name, dims, 0, data_.size());
    data_.append((bytes + 31) / 32 * 32, '\0');
    return *this;
  }
  GgufWriter& data(std::string_view bytes) {
    data_ += bytes;
    return *this;
  }

  [[nodiscard]] std::string file(std::uint32_t version = 3) const {
    std::string out =
        "GGUF" + little_endian(version) + little_endian(tensor_count_) + little_endian(key_count_);
    out += keys_ + tensors_;
    if (data_.empty()) return out;
    out.resize((out.size() + 31) / 32 * 32, '\0');
    return out + data_;
  }

 private:
  std::string keys_, tensors_, data_;
  std::uint64_t key_count_ = 0, tensor_count_ = 0;
};

/// A file in memory that is aligned as a mapped one.
class GgufBytes {
 public:
  explicit GgufBytes(std::string_view file) : memory_(file.size()), size_(file.size()) {
    if (size_ != 0) std::memcpy(memory_.data(), file.data(), size_);
  }
  [[nodiscard]] Bytes bytes() const noexcept { return Bytes(memory_.data(), size_); }
  [[nodiscard]] Gguf open() const { return Gguf::from_bytes(bytes(), "m.gguf"); }

 private:
  AlignedBuffer memory_;
  std::size_t size_;
};

/// The keys that every model of `architecture` needs.
inline GgufWriter gguf_config(const std::string& architecture) {
  GgufWriter file;
  file.text("general.architecture", architecture);
  for (const auto& [key, value] :
       std::vector<std::pair<std::string, std::uint32_t>>{{"block_count", 1},
                                                          {"context_length", 64},
                                                          {"embedding_length", 16},
                                                          {"feed_forward_length", 24}}) {
    file.u32(architecture + "." + key, value);
  }
  return file.f32(architecture + ".attention.layer_norm_rms_epsilon", 1e-6f);
}

}  // namespace qgen::test
