#include "qgen/weights/vocabulary.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <optional>
#include <string_view>

#include "qgen/base/error.h"
#include "qgen/base/json.h"
#include "qgen/base/mapped_file.h"
#include "qgen/base/utf8.h"
#include "weights/torch/pickle.h"
#include "weights/torch/torch_dict.h"

namespace qgen {
namespace {

constexpr std::int64_t kMaxId = std::numeric_limits<TokenId>::max();

bool is_pickle(Bytes file) {
  return !file.empty() && file[0] == std::byte{0x80};
}

/// Fills a vocabulary and keeps count of its size.
class Filler {
 public:
  explicit Filler(Vocabulary& vocabulary) : vocabulary_(vocabulary) {}

  void piece(std::int64_t id, std::string text, const std::string& source) {
    if (id < 0 || id > kMaxId) {
      throw Error(ErrorKind::file, source + ": ids from 0 to " + std::to_string(kMaxId) + " expected, " +
                                       std::to_string(id) + " found");
    }
    count(text.size(), source);
    vocabulary_.pieces.emplace_back(static_cast<TokenId>(id), std::move(text));
  }
  void merge(std::string left, std::string right, const std::string& source) {
    count(left.size() + right.size(), source);
    vocabulary_.merges.emplace_back(std::move(left), std::move(right));
  }

 private:
  void count(std::size_t more, const std::string& source) {
    bytes_ += more;
    if (bytes_ <= kMostVocabularyBytes) return;
    throw Error(ErrorKind::file, source + ": vocabulary and merges have more than " +
                                     std::to_string(kMostVocabularyBytes) + " bytes, the most that are read");
  }

  Vocabulary& vocabulary_;
  std::size_t bytes_ = 0;
};

class PickledVocabulary {
 public:
  PickledVocabulary(Bytes file, const std::string& source)
      : pickle_(read_pickle(file, source)), source_(source) {}

  void read_pieces(Filler& into) const {
    const PickleValue& root = pickle_[pickle_.root];
    const auto members = dict_members(pickle_, root);
    if (!members) fail("a dict of ids and bytes expected, " + pickle_.describe(root) + " found");
    for (const auto& [key, value] : *members) {
      // Both directions are in use.
      const bool by_id = key->kind == PickleKind::integer;
      const PickleValue& id = by_id ? *key : *value;
      if (id.kind != PickleKind::integer) {
        fail("an id expected for each piece, " + pickle_.describe(id) + " found");
      }
      into.piece(id.integer, bytes(by_id ? *value : *key), source_);
    }
  }

  void read_merges(Filler& into) const {
    const PickleValue& root = pickle_[pickle_.root];
    if (root.kind != PickleKind::list) {
      fail("a list of pairs of bytes expected, " + pickle_.describe(root) + " found");
    }
    for (const PickleId id : root.items) {
      const PickleValue& pair = pickle_[id];
      const bool sequence = pair.kind == PickleKind::tuple || pair.kind == PickleKind::list;
      if (!sequence || pair.items.size() != 2) {
        fail("a pair of bytes expected for each merge, " + pickle_.describe(pair) + " found");
      }
      into.merge(bytes(pickle_[pair.items[0]]), bytes(pickle_[pair.items[1]]), source_);
    }
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(ErrorKind::file, source_ + ": " + reason);
  }

  /// Protocol 2 has no bytes: it writes calls of _codecs.encode(text, "latin1"), or of bytes() where there
  /// are none.
  [[nodiscard]] std::string bytes(const PickleValue& value) const {
    if (value.kind == PickleKind::bytes) return std::string(value.text);
    const bool empty =
        pickle_.is_call(value, "__builtin__", "bytes") || pickle_.is_call(value, "builtins", "bytes");
    if (empty && pickle_[value.items[1]].items.empty()) return {};
    if (pickle_.is_call(value, "_codecs", "encode")) {
      const std::vector<PickleId>& arguments = pickle_[value.items[1]].items;
      if (arguments.size() == 2 && is_text(arguments[0]) && is_text(arguments[1]) &&
          pickle_[arguments[1]].text == "latin1") {
        return latin1(pickle_[arguments[0]].text);
      }
    }
    fail("bytes expected, " + pickle_.describe(value) + " found");
  }

  [[nodiscard]] bool is_text(PickleId id) const noexcept { return pickle_[id].kind == PickleKind::text; }

  [[nodiscard]] std::string latin1(std::string_view text) const {
    std::string result;
    for (std::size_t at = 0; at < text.size();) {
      const Utf8Char next = decode_utf8(text, at);
      if (!next.valid || next.code_point > 0xFF)
        fail("a text that stands for bytes has others than 0 to 255");
      result += static_cast<char>(next.code_point);
      at += next.length;
    }
    return result;
  }

  Pickle pickle_;
  const std::string& source_;
};

std::optional<std::int64_t> number(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (problem != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

void read_json_pieces(std::string_view text, const std::string& source, Filler& into) {
  const Json json = parse_json(text, source);
  const JsonObject* members = json.as_object();
  if (members == nullptr) {
    throw Error(ErrorKind::file, source + ": an object of pieces and ids expected, " +
                                     std::string(json.type_name()) + " found");
  }
  for (const auto& [name, value] : *members) {
    const std::optional<std::int64_t> id = value.as_int();
    const std::string* piece = value.as_string();
    if (id) {
      into.piece(*id, name, source);
    } else if (const auto named = number(name); piece != nullptr && named) {
      into.piece(*named, *piece, source);
    } else {
      throw Error(ErrorKind::file, source + ": member " + shorten(name) +
                                       ": an id for a piece or a piece for an id expected, " +
                                       std::string(value.type_name()) + " found");
    }
  }
}

/// The pieces of GPT-2's alphabet have no spaces in them.
void read_merge_lines(std::string_view text, const std::string& source, Filler& into) {
  std::size_t number = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (number == 1 && line.starts_with("#version"))) continue;
    const std::size_t space = line.find(' ');
    const bool pair = space != std::string_view::npos && space > 0 && space + 1 < line.size() &&
                      line.find(' ', space + 1) == std::string_view::npos;
    if (!pair) {
      throw Error(ErrorKind::file, source + ": line " + std::to_string(number) +
                                       ": two pieces with a space between them expected, \"" + shorten(line) +
                                       "\" found");
    }
    into.merge(std::string(line.substr(0, space)), std::string(line.substr(space + 1)), source);
  }
}

}  // namespace

Vocabulary read_vocabulary(const std::filesystem::path& vocab, const std::filesystem::path& merges) {
  const MappedFile vocab_file(vocab), merges_file(merges);
  return read_vocabulary({vocab_file.bytes(), escape_control(vocab.string())},
                         {merges_file.bytes(), escape_control(merges.string())});
}

Vocabulary read_vocabulary(const NamedBytes& vocab, const NamedBytes& merges) {
  Vocabulary vocabulary;
  Filler filler(vocabulary);
  vocabulary.raw_bytes = is_pickle(vocab.data);
  if (vocabulary.raw_bytes != is_pickle(merges.data)) {
    throw Error(ErrorKind::file, vocab.source + " and " + merges.source +
                                     ": two pickles or two texts expected, one of each found");
  }
  if (vocabulary.raw_bytes) {
    PickledVocabulary(vocab.data, vocab.source).read_pieces(filler);
    PickledVocabulary(merges.data, merges.source).read_merges(filler);
  } else {
    read_json_pieces(as_text(vocab.data), vocab.source, filler);
    read_merge_lines(as_text(merges.data), merges.source, filler);
  }
  return vocabulary;
}

}  // namespace qgen
