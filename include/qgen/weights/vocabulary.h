#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "qgen/base/bytes.h"

namespace qgen {

/// The most bytes that pieces and merges may have together; real ones have a few millions. Pickles may state
/// one text many times in a few bytes.
inline constexpr std::size_t kMostVocabularyBytes = 256'000'000;

/// A byte-level BPE vocabulary as training scripts leave it.
struct Vocabulary {
  std::vector<std::pair<TokenId, std::string>> pieces;
  std::vector<std::pair<std::string, std::string>> merges;  ///< in order of rank
  bool raw_bytes = false;  ///< the texts are the bytes themselves rather than GPT-2's spelling of them
};

/// Reads a vocabulary and its merges, both pickled (a dict of ids and bytes, a list of pairs of bytes) or
/// both texts in GPT-2's byte alphabet (JSON with an id for each piece or a piece for each id; a merge "a b"
/// on each line). Which of the two is told by their first byte. Throws Error{file} naming file, expected and
/// found.
Vocabulary read_vocabulary(const std::filesystem::path& vocab, const std::filesystem::path& merges);

/// The contents of a file and its name for messages.
struct NamedBytes {
  Bytes data;
  std::string source;  ///< already escaped
};
/// The same from memory.
Vocabulary read_vocabulary(const NamedBytes& vocab, const NamedBytes& merges);

}  // namespace qgen
