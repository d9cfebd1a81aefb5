// vocab.json, merges.txt, tokenizer_config.json, added_tokens.json and special_tokens_map.json with a NUL
// between each, empty where a folder lacks it: they load, or give an Error, and what loads can be used.

#include <array>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

#include "parts.h"
#include "qgen/base/error.h"
#include "qgen/tokenizer/tokenizer.h"

namespace {

namespace fs = std::filesystem;
using qgen::fuzz::check;

constexpr std::string_view kNames[] = {"vocab.json", "merges.txt", "tokenizer_config.json",
                                       "added_tokens.json", "special_tokens_map.json"};

using Parts = std::array<std::string_view, std::size(kNames)>;

/// A folder for each process, since several fuzz at once; gone at its end.
class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "qgen-fuzz-XXXXXX").string();
    check(::mkdtemp(pattern.data()) != nullptr);
    path_ = pattern;
  }
  ~Folder() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;

  [[nodiscard]] const fs::path& path() const noexcept { return path_; }
  /// Writes what differs from before: files are slow.
  void write(const Parts& parts) {
    for (std::size_t i = 0; i < parts.size(); ++i) {
      if (parts[i] == written_[i]) continue;
      written_[i] = parts[i];
      if (parts[i].empty()) {
        fs::remove(path_ / kNames[i]);
      } else {
        std::ofstream(path_ / kNames[i], std::ios::binary) << parts[i];
      }
    }
  }

 private:
  fs::path path_;
  std::array<std::string, std::size(kNames)> written_;
};

void use(const qgen::Tokenizer& tokenizer) {
  for (const bool parse_special : {false, true}) {
    const auto ids = tokenizer.encode("He'll say <s> 12  e\xCC\x81\n\n\xFF <|endoftext|>",
                                      {.parse_special = parse_special});
    for (const qgen::TokenId id : ids) check(tokenizer.is_known(id));
    static_cast<void>(tokenizer.decode(ids, parse_special));
  }
  for (const qgen::TokenId id : tokenizer.end_ids()) check(tokenizer.is_known(id));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static Folder folder;
  folder.write(qgen::fuzz::parts_of<std::size(kNames)>({reinterpret_cast<const char*>(data), size}));
  try {
    use(qgen::Tokenizer::from_folder(folder.path()));
  } catch (const qgen::Error& error) {
    qgen::fuzz::check_shown(error.what());
  }
  return 0;
}
