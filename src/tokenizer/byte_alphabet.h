#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace qgen::byte_alphabet {

/// Byte-level vocabularies spell every byte as one visible character: most of Latin-1 stands for itself, the
/// other bytes for U+0100 and up in ascending order. This is that character, as UTF-8.
std::string_view spelling_of(unsigned char byte) noexcept;

/// The bytes that `spelling` stands for, or nothing if it has a character outside the alphabet.
std::optional<std::string> bytes_of(std::string_view spelling);

}  // namespace qgen::byte_alphabet
