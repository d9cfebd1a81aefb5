#include "qgen/weights/gguf.h"

#include <array>
#include <cstdio>
#include <string>
#include <utility>

#include "qgen/base/error.h"
#include "qgen/base/utf8.h"
#include "weights/gguf_reader.h"

namespace qgen {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostParts = 65535;  // split.count has 16 bits
constexpr std::int64_t kMostTensorsInAll = std::int64_t{1} << 31;

std::string path_text(const fs::path& path) {
  return escape_control(path.string());
}

/// What follows the common part of the names of a model's parts.
std::string part_suffix(std::int64_t number, std::int64_t count) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), "-%05lld-of-%05lld.gguf", static_cast<long long>(number),
                static_cast<long long>(count));
  return text.data();
}

std::int64_t part_count(const GgufMetadata& metadata) {
  return metadata.integer("split.count", 0, kMostParts).value_or(1);
}

/// The common part of the names of all parts, from the name of the first. Names never come from a file's
/// contents.
std::string common_name(const fs::path& first, const GgufMetadata& metadata, std::int64_t count) {
  const std::string name = first.filename().string();
  const std::int64_t number = metadata.integer("split.no", 0, kMostParts).value_or(0);
  const std::string suffix = part_suffix(number + 1, count);
  if (!name.ends_with(suffix)) {
    metadata.fail("split.count", "this is one of " + std::to_string(count) +
                                     " parts, so a name that ends in " + suffix + " is expected");
  }
  const std::string common = name.substr(0, name.size() - suffix.size());
  if (number != 0) {
    metadata.fail("split.no", "this is part " + std::to_string(number + 1) + " of " + std::to_string(count) +
                                  ", give the first: " + escape_control(common + part_suffix(1, count)));
  }
  return common;
}

void check_part(const GgufMetadata& metadata, std::int64_t number, std::int64_t count) {
  const auto expect = [&](const char* key, std::int64_t expected) {
    const auto found = metadata.integer(key, 0, kMostParts);
    if (found == expected) return;
    metadata.fail(key, std::to_string(expected) + " expected, " +
                           (found ? std::to_string(*found) : std::string("nothing")) + " found");
  };
  expect("split.no", number);
  expect("split.count", count);
}

}  // namespace

Gguf Gguf::open(const fs::path& path) {
  Gguf gguf;
  GgufContents first =
      read_gguf(gguf.files_.emplace_back(path).bytes(), path_text(path), GgufPart::everything);
  gguf.metadata_ = std::move(first.metadata);
  gguf.tensors_ = std::move(first.tensors);
  const std::int64_t count = part_count(gguf.metadata_);
  if (count <= 1) return gguf;

  const std::string common = common_name(path, gguf.metadata_, count);
  for (std::int64_t number = 1; number < count; ++number) {
    const fs::path part = path.parent_path() / (common + part_suffix(number + 1, count));
    GgufContents more =
        read_gguf(gguf.files_.emplace_back(part).bytes(), path_text(part), GgufPart::everything);
    check_part(more.metadata, number, count);
    std::ranges::move(more.tensors, std::back_inserter(gguf.tensors_));
  }
  const auto stated = gguf.metadata_.integer("split.tensors.count", 0, kMostTensorsInAll);
  if (stated && *stated != std::ssize(gguf.tensors_)) {
    gguf.metadata_.fail("split.tensors.count", std::to_string(*stated) + " tensors expected, " +
                                                   std::to_string(gguf.tensors_.size()) +
                                                   " found in all parts");
  }
  return gguf;
}

Gguf Gguf::open_metadata(const fs::path& path) {
  Gguf gguf;
  gguf.metadata_ =
      read_gguf(gguf.files_.emplace_back(path).bytes(), path_text(path), GgufPart::metadata).metadata;
  const std::int64_t count = part_count(gguf.metadata_);
  if (count > 1) (void)common_name(path, gguf.metadata_, count);
  return gguf;
}

Gguf Gguf::from_bytes(Bytes data, std::string_view source) {
  GgufContents contents = read_gguf(data, escape_control(source), GgufPart::everything);
  Gguf gguf;
  gguf.metadata_ = std::move(contents.metadata);
  gguf.tensors_ = std::move(contents.tensors);
  return gguf;
}

bool is_gguf(const fs::path& file) {
  try {
    return as_text(MappedFile(file).bytes()).starts_with("GGUF");
  } catch (const Error&) {
    return false;
  }
}

}  // namespace qgen
