#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/base/bytes.h"
#include "qgen/base/error.h"
#include "qgen/base/mapped_file.h"
#include "qgen/weights/checkpoint.h"
#include "qgen/weights/model_config.h"

namespace qgen {

/// Types of metadata values under their numbers in the file.
enum class GgufType : std::uint32_t {
  u8,
  i8,
  u16,
  i16,
  u32,
  i32,
  f32,
  boolean,
  string,
  array,
  u64,
  i64,
  f64
};

/// A value as it lies in the file, bounds proven.
struct GgufValue {
  GgufType type = GgufType::u8;
  GgufType element = GgufType::u8;  ///< of an array
  std::uint64_t count = 1;          ///< of elements of an array
  /// A number's little-endian bytes; a string's text; an array's elements one after the other (strings with
  /// their 64-bit length before them).
  Bytes bytes;
};

/// The metadata of a GGUF file, with typed access. A key that is there with a value of another type or out of
/// range is an Error{file} naming key, expected and found; absent keys give nothing.
class GgufMetadata {
 public:
  using Entries = std::map<std::string_view, GgufValue>;

  GgufMetadata() = default;
  /// `source` names the file in messages and is escaped already; `entries` refer to the file's bytes.
  GgufMetadata(Entries entries, std::string source)
      : entries_(std::move(entries)), source_(std::move(source)) {}

  [[nodiscard]] const Entries& entries() const noexcept { return entries_; }
  [[nodiscard]] const std::string& source() const noexcept { return source_; }
  [[nodiscard]] const GgufValue* find(std::string_view key) const;

  [[nodiscard]] std::optional<bool> boolean(std::string_view key) const;
  /// Any integer type; `low` and `high` are both allowed.
  [[nodiscard]] std::optional<std::int64_t> integer(std::string_view key, std::int64_t low,
                                                    std::int64_t high) const;
  /// Finite, `low` and `high` both allowed. A 32-bit value becomes the shortest decimal that it stands for,
  /// since such values were decimals before they were written (1e-06, not 9.99999997e-07).
  [[nodiscard]] std::optional<double> number(std::string_view key, double low, double high) const;
  [[nodiscard]] std::optional<std::string_view> text(std::string_view key) const;
  /// An array of strings.
  [[nodiscard]] std::optional<std::vector<std::string_view>> texts(std::string_view key) const;
  /// An array of integers of any type.
  [[nodiscard]] std::optional<std::vector<std::int64_t>> integers(std::string_view key) const;

  /// Throws an Error that names the key.
  [[noreturn]] void fail(std::string_view key, const std::string& reason,
                         ErrorKind kind = ErrorKind::file) const;

 private:
  [[noreturn]] void refuse(std::string_view key, const std::string& expected, const GgufValue& found) const;
  [[nodiscard]] const GgufValue* find_array(std::string_view key, const char* expected) const;

  Entries entries_;
  std::string source_;
};

/// A tensor under its own name.
struct GgufTensor {
  std::string_view name;
  StoredTensor tensor;
};

/// A GGUF file, version 2 or 3 in little-endian order, and where it is split its other parts. Everything in
/// it is checked before use: magic, version and byte order; each count, length and offset against the bytes
/// that are left, products with overflow; types; keys and tensor names for repetition; tensors for shared
/// bytes. Limits: 65,536 keys (models have some dozens), arrays nested 4 deep, 1,048,576 tensors, 4
/// dimensions, 64 KiB of alignment. Nothing is reserved beyond what the file's own bytes back. A tensor of a
/// type that cannot be read is refused here, by name.
class Gguf {
 public:
  /// Maps `path` and all other parts (<name>-00001-of-00003.gguf, ...; `path` must be the first, and the
  /// names of the others follow from its own). Throws Error{file} naming file, key or tensor, expected and
  /// found; Error{unsupported} for byte orders, versions and types that are not read.
  static Gguf open(const std::filesystem::path& path);
  /// Only the metadata (of the first part); tensors() stays empty and what follows is not looked at.
  static Gguf open_metadata(const std::filesystem::path& path);
  /// One file in memory, aligned to 8 bytes, which must outlive the result.
  static Gguf from_bytes(Bytes data, std::string_view source);

  [[nodiscard]] const GgufMetadata& metadata() const noexcept { return metadata_; }
  [[nodiscard]] const std::vector<GgufTensor>& tensors() const noexcept { return tensors_; }

 private:
  friend class Checkpoint;  // takes the files over

  std::vector<MappedFile> files_;
  GgufMetadata metadata_;
  std::vector<GgufTensor> tensors_;
};

/// Whether `file` begins as GGUF files do. False where it cannot be read.
bool is_gguf(const std::filesystem::path& file);

/// The name under which a tensor of GGUF is known here (Hugging Face's): "blk.0.attn_q.weight" is
/// "model.layers.0.self_attn.q_proj.weight"; nothing for an unknown one. Stacked experts are named like
/// "model.layers.0.mlp.experts.gate_proj.weight".
std::optional<std::string> name_from_gguf(std::string_view name);
/// The other way; an expert's matrix has the name of the stack that holds it.
std::optional<std::string> gguf_name_of(std::string_view name);

/// The general.architecture values that can be read: llama, qwen2, qwen3, qwen3moe. Others are refused by
/// name. Keys that contradict each other or the tensors are refused by name too.
ModelConfig gguf_model_config(const Gguf& gguf);
/// The general.sampling keys.
GenerationConfig gguf_generation_config(const GgufMetadata& metadata);

}  // namespace qgen
