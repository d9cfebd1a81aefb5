#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qgen::test {

/// The eight bytes that state the length of the header.
inline std::string length_prefix(std::uint64_t length) {
  std::string prefix;
  for (int i = 0; i < 8; ++i) prefix += static_cast<char>(length >> (8 * i) & 0xFF);
  return prefix;
}

/// A safetensors file with this header and these data, right or wrong.
inline std::string safetensors_file(std::string_view header, std::string_view data) {
  return length_prefix(header.size()).append(header).append(data);
}

/// The same with the header padded with spaces to `length`.
inline std::string safetensors_file(std::string header, std::size_t length, std::string_view data) {
  header.resize(length, ' ');
  return safetensors_file(header, data);
}

/// A sound file of tensors that are all of one type and zero.
class SafetensorsWriter {
 public:
  explicit SafetensorsWriter(std::string_view dtype = "F32", std::size_t element = 4)
      : dtype_(dtype), element_(element) {}

  void add(std::string_view name, const std::vector<std::int64_t>& shape) {
    std::size_t bytes = element_;
    std::string dims;
    for (const std::int64_t n : shape) {
      bytes *= static_cast<std::size_t>(n);
      dims += (dims.empty() ? "" : ",") + std::to_string(n);
    }
    header_ += (header_.empty() ? "{\"" : ",\"") + std::string(name) + "\":{\"dtype\":\"" + dtype_ +
               "\",\"shape\":[" + dims + "],\"data_offsets\":[" + std::to_string(size_) + "," +
               std::to_string(size_ + bytes) + "]}";
    size_ += bytes;
  }

  /// All but the data, of which there are size() bytes.
  [[nodiscard]] std::string front() const {
    std::string header = header_.empty() ? "{}" : header_ + "}";
    header.resize((header.size() + 7) / 8 * 8, ' ');
    return safetensors_file(header, "");
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] std::string file() const { return front() + std::string(size_, '\0'); }

 private:
  std::string dtype_;
  std::size_t element_;
  std::string header_;
  std::size_t size_ = 0;
};

}  // namespace qgen::test
