#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "qgen/base/error.h"
#include "qgen/base/json.h"
#include "qgen/base/mapped_file.h"
#include "qgen/base/utf8.h"
#include "qgen/tokenizer/tokenizer.h"
#include "tokenizer/small_tokenizer.h"

namespace qgen::testing {

inline std::string read_file(const std::filesystem::path& path) {
  return std::string(as_text(MappedFile(path).bytes()));
}

inline std::filesystem::path golden(const std::string& name) {
  return std::filesystem::path(QGEN_TEST_DATA) / "golden" / "tokenizer" / name;
}

/// The values of a file that has one on each line.
inline std::vector<Json> golden_lines(const std::string& name) {
  std::vector<Json> values;
  std::ifstream file(golden(name));
  EXPECT_TRUE(file.is_open()) << golden(name);
  for (std::string line; std::getline(file, line);) values.push_back(parse_json(line, name));
  return values;
}

inline std::vector<TokenId> ids_of(const Json& list) {
  std::vector<TokenId> ids;
  for (const Json& id : *list.as_array()) ids.push_back(static_cast<TokenId>(*id.as_int()));
  return ids;
}

inline Tokenizer load(const std::string& json) {
  return Tokenizer::from_json(json, "", "tokenizer.json");
}

inline const Tokenizer& tales() {
  static const Tokenizer tokenizer = load(read_file(QGEN_TALES_TOKENIZER));
  return tokenizer;
}

/// Expects `action` to throw an Error of `kind` whose message holds each of `parts`.
template <typename Action>
void expect_error(ErrorKind kind, const std::vector<std::string>& parts, Action action) {
  try {
    action();
    ADD_FAILURE() << "no error";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    for (const std::string& part : parts) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos)
          << error.what() << "\nlacks " << part;
    }
  }
}

inline std::vector<std::string> pieces_of(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::vector<std::string> pieces;
  for (const TokenId id : ids) pieces.emplace_back(tokenizer.bytes(id));
  return pieces;
}

constexpr std::size_t kCodePointChunks = 272;

/// The text that the reference script builds for a chunk of 4,096 code points: each, or in the empty planes
/// every 64th, in several companies.
inline std::string code_points_in_company(std::size_t chunk) {
  std::string text;
  const auto begin = static_cast<char32_t>(chunk * 4096);
  const char32_t step = begin < 0x34000 || begin == 0xE0000 ? 1 : 64;
  for (char32_t c = begin; c < begin + 4096; c += step) {
    if (c >= 0xD800 && c < 0xE000) continue;
    std::string x;
    append_utf8(x, c);
    text += x + "a" + x + "A1" + x + " " + x + x + "\n" + x + "'" + x + "e " + x + "!a\u0301" + x;
  }
  return text;
}

inline std::string fnv_hash(std::string_view bytes) {
  std::uint64_t hash = 0xCBF29CE484222325;
  for (const char c : bytes) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3;
  std::string text(16, '0');
  for (std::size_t i = 0; i < 16; ++i) text[15 - i] = "0123456789abcdef"[(hash >> (4 * i)) & 15];
  return text;
}

/// A folder that is gone when the test ends.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "qgen-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) ADD_FAILURE() << "no temporary folder";
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  void write(const std::string& name, const std::string& content) const {
    std::ofstream(path_ / name, std::ios::binary) << content;
  }

 private:
  std::filesystem::path path_;
};

}  // namespace qgen::testing
