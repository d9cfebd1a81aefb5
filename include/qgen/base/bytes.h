#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace qgen {

/// Read-only bytes owned by somebody else: a mapped file or the embedded model.
using Bytes = std::span<const std::byte>;

/// An id in a model's vocabulary; negative values never occur in valid data.
using TokenId = std::int32_t;

/// The same bytes as text.
inline std::string_view as_text(Bytes bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The same text as bytes.
inline Bytes as_bytes(std::string_view text) {
  return std::as_bytes(std::span<const char>(text.data(), text.size()));
}

}  // namespace qgen
