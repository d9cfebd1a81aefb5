#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "qgen/base/bytes.h"
#include "qgen/base/output_file.h"
#include "qgen/tensor/dtype.h"
#include "qgen/weights/gguf.h"

namespace qgen {

/// The number under which metadata holds a C++ type.
template <typename T>
constexpr GgufType gguf_type_of() noexcept {
  if constexpr (std::is_same_v<T, bool>) return GgufType::boolean;
  if constexpr (std::is_same_v<T, std::uint8_t>) return GgufType::u8;
  if constexpr (std::is_same_v<T, std::int8_t>) return GgufType::i8;
  if constexpr (std::is_same_v<T, std::uint16_t>) return GgufType::u16;
  if constexpr (std::is_same_v<T, std::int16_t>) return GgufType::i16;
  if constexpr (std::is_same_v<T, std::uint32_t>) return GgufType::u32;
  if constexpr (std::is_same_v<T, std::int32_t>) return GgufType::i32;
  if constexpr (std::is_same_v<T, std::uint64_t>) return GgufType::u64;
  if constexpr (std::is_same_v<T, std::int64_t>) return GgufType::i64;
  if constexpr (std::is_same_v<T, float>) return GgufType::f32;
  if constexpr (std::is_same_v<T, double>) return GgufType::f64;
}

/// What stands in front of the tensors' data: metadata in the order in which it was added, and the list of
/// tensors. A key that is added again gets the new value in its old place.
class GgufHeader {
 public:
  template <typename T>
  requires std::is_arithmetic_v<T>
  void add(std::string_view key, T value) { put(key, gguf_type_of<T>(), text_of(&value, 1)); }
  template <typename T>
  requires std::is_arithmetic_v<T>
  void add(std::string_view key, const std::vector<T>& values) {
    put_array(key, gguf_type_of<T>(), values.size(), text_of(values.data(), values.size()));
  }
  void add(std::string_view key, std::string_view text);
  void add(std::string_view key, const std::vector<std::string>& texts);
  /// A value from another file, as it is.
  void add(std::string_view key, const GgufValue& value);

  /// `shape` outermost first; rows must be whole blocks.
  void add_tensor(std::string_view name, DType dtype, std::vector<std::int64_t> shape);

 private:
  friend class GgufWriter;

  struct Tensor {
    std::string name;
    DType dtype;
    std::vector<std::int64_t> shape;
    std::uint64_t bytes;
  };

  template <typename T>
  static std::string_view text_of(const T* values, std::size_t count) {
    return {reinterpret_cast<const char*>(values), count * sizeof(T)};
  }
  void put(std::string_view key, GgufType type, std::string_view encoded);
  void put_array(std::string_view key, GgufType element, std::uint64_t count, std::string_view encoded);
  [[nodiscard]] std::string encode() const;

  std::vector<std::pair<std::string, std::string>> entries_;  // key, type and value as the file has them
  std::vector<Tensor> tensors_;
};

/// Writes a GGUF file, version 3, little-endian, tensors aligned to 32 bytes, in one go from front to back.
/// The file appears under its name only when finish() is through; see OutputFile. All functions throw
/// Error{output} with the system's reason.
class GgufWriter {
 public:
  /// Writes all that stands in front of the data.
  GgufWriter(const std::filesystem::path& path, const GgufHeader& header);
  /// The next part of the tensors' data, in the order of the header; no part may reach into the next tensor.
  void write(Bytes part);
  /// Once, when the data of all tensors has been written.
  void finish();

 private:
  void pad();

  OutputFile file_;
  std::vector<std::uint64_t> bytes_;  // of each tensor
  std::size_t tensor_ = 0;            // the one being written
  std::uint64_t written_ = 0;         // bytes of it
};

}  // namespace qgen
