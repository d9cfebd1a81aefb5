#include "weights/torch/zip.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "qgen/base/error.h"
#include "qgen/base/utf8.h"
#include "weights/torch/little_endian.h"

// Layout: for each entry a local header, its name, an extra field and its data; then the directory, a header
// for each entry once more with its size and place; then the end record, which tells where the directory is.
// Counts, sizes and places that 16 or 32 bits cannot hold are all ones there and stand in 64 bits elsewhere
// (zip64): those of the end record in a second end record, found by a locator right before the first; those
// of an entry in its extra field. Sizes in local headers may be missing (zero, stated after the data), so the
// directory's count.

namespace qgen {
namespace {

constexpr std::uint32_t kLocalSignature = 0x04034b50, kDirectorySignature = 0x02014b50;
constexpr std::uint32_t kEndSignature = 0x06054b50, kEnd64Signature = 0x06064b50;
constexpr std::uint32_t kLocatorSignature = 0x07064b50;
constexpr std::uint64_t kLocalSize = 30, kDirectorySize = 46, kEndSize = 22, kEnd64Size = 56;
constexpr std::uint64_t kLocatorSize = 20;
constexpr std::uint64_t kMostComment = 0xFFFF;
constexpr std::uint16_t kAllOnes16 = 0xFFFF;
constexpr std::uint32_t kAllOnes32 = 0xFFFFFFFF;
constexpr std::uint16_t kZip64Extra = 1;

/// Where the directory is and how many entries it lists.
struct End {
  std::uint64_t place;  ///< of the first end record: everything else lies before it
  std::uint64_t entries, directory_size, directory;
};

struct Entry {
  std::string_view name;
  std::uint64_t local, size;
  std::uint64_t data = 0;  ///< where its bytes begin
};

class ZipReader {
 public:
  ZipReader(Bytes file, const std::string& source) : file_(file), source_(source) {}

  ZipEntries read() const {
    const End end = read_end();
    std::vector<Entry> entries = read_directory(end);
    for (Entry& entry : entries) place_data(entry, end.directory);
    check_apart(entries);
    ZipEntries result;
    for (const Entry& entry : entries) {
      if (!result.emplace(entry.name, file_.subspan(entry.data, entry.size)).second) {
        fail("the entry " + shorten(entry.name) + " occurs twice");
      }
    }
    return result;
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(ErrorKind::file, source_ + ": " + reason);
  }
  [[noreturn]] void refuse(const Entry& entry, const std::string& reason) const {
    fail("the entry " + shorten(entry.name) + " " + reason);
  }

  template <typename T>
  [[nodiscard]] T at(std::uint64_t place) const noexcept {
    return little_endian<T>(file_.subspan(place));
  }
  /// Whether `size` bytes at `place` end before `limit`.
  [[nodiscard]] static bool fits(std::uint64_t place, std::uint64_t size, std::uint64_t limit) noexcept {
    return place <= limit && size <= limit - place;
  }

  /// The last signature whose comment reaches exactly to the end of the file.
  [[nodiscard]] std::uint64_t find_end() const {
    const std::uint64_t size = file_.size();
    for (std::uint64_t back = kEndSize; back <= std::min(size, kEndSize + kMostComment); ++back) {
      const std::uint64_t place = size - back;
      if (at<std::uint32_t>(place) == kEndSignature && at<std::uint16_t>(place + 20) == back - kEndSize) {
        return place;
      }
    }
    fail("truncated, or not a zip archive as torch.save writes it: its end record is missing");
  }

  End read_end() const {
    const std::uint64_t place = find_end();
    if (at<std::uint16_t>(place + 4) != at<std::uint16_t>(place + 6)) fail_in_parts();
    End end{.place = place,
            .entries = at<std::uint16_t>(place + 10),
            .directory_size = at<std::uint32_t>(place + 12),
            .directory = at<std::uint32_t>(place + 16)};
    const bool zip64 = place >= kLocatorSize && at<std::uint32_t>(place - kLocatorSize) == kLocatorSignature;
    if (zip64) {
      read_end64(end);
    } else if (at<std::uint16_t>(place + 4) != 0 || at<std::uint16_t>(place + 8) != end.entries) {
      fail_in_parts();
    } else if (end.entries == kAllOnes16 || end.directory == kAllOnes32 || end.directory_size == kAllOnes32) {
      fail("truncated: the zip64 end record is missing");
    }
    if (end.entries > kMostZipEntries) {
      fail("at most " + std::to_string(kMostZipEntries) + " entries are read, the archive has " +
           std::to_string(end.entries));
    }
    if (!fits(end.directory, end.directory_size, end.place)) {
      fail("damaged: a directory of " + std::to_string(end.directory_size) + " bytes at " +
           std::to_string(end.directory) + " does not fit into the file of " + std::to_string(file_.size()));
    }
    return end;
  }

  void read_end64(End& end) const {
    const std::uint64_t locator = end.place - kLocatorSize;
    const auto place = at<std::uint64_t>(locator + 8);
    if (at<std::uint32_t>(locator + 16) > 1) fail_in_parts();
    if (!fits(place, kEnd64Size, locator) || at<std::uint32_t>(place) != kEnd64Signature) {
      fail("damaged: no zip64 end record where its locator points to");
    }
    if (at<std::uint32_t>(place + 16) != at<std::uint32_t>(place + 20) ||
        at<std::uint64_t>(place + 24) != at<std::uint64_t>(place + 32)) {
      fail_in_parts();
    }
    end.place = place;
    end.entries = at<std::uint64_t>(place + 32);
    end.directory_size = at<std::uint64_t>(place + 40);
    end.directory = at<std::uint64_t>(place + 48);
  }

  [[noreturn]] void fail_in_parts() const { fail("archives in several parts are not read"); }

  std::vector<Entry> read_directory(const End& end) const {
    std::vector<Entry> entries;
    std::uint64_t place = end.directory;
    const std::uint64_t limit = end.directory + end.directory_size;
    for (std::uint64_t i = 0; i < end.entries; ++i) {
      if (!fits(place, kDirectorySize, limit) || at<std::uint32_t>(place) != kDirectorySignature) {
        fail("damaged: the directory has " + std::to_string(i) + " entries, " + std::to_string(end.entries) +
             " expected");
      }
      const std::uint64_t name = at<std::uint16_t>(place + 28), extra = at<std::uint16_t>(place + 30);
      const std::uint64_t size = kDirectorySize + name + extra + at<std::uint16_t>(place + 32);
      if (!fits(place, size, limit)) {
        fail("damaged: entry " + std::to_string(i) + " of the directory does not fit into it");
      }
      entries.push_back(read_entry(place, name, extra));
      place += size;
    }
    return entries;
  }

  Entry read_entry(std::uint64_t place, std::uint64_t name_size, std::uint64_t extra_size) const {
    Entry entry{.name = as_text(file_.subspan(place + kDirectorySize, name_size)),
                .local = at<std::uint32_t>(place + 42),
                .size = at<std::uint32_t>(place + 24)};
    std::uint64_t packed = at<std::uint32_t>(place + 20);
    if ((at<std::uint16_t>(place + 8) & 1U) != 0) refuse(entry, "is encrypted: that is not supported");
    if (const auto method = at<std::uint16_t>(place + 10); method != 0) {
      refuse(entry,
             "is compressed (method " + std::to_string(method) +
                 "), as in TorchScript and in archives packed by other programs: only entries stored as they "
                 "are, the way of torch.save, are read");
    }
    const auto disk = at<std::uint16_t>(place + 34);
    if (disk != 0 && disk != kAllOnes16) fail_in_parts();
    read_extra(file_.subspan(place + kDirectorySize + name_size, extra_size), entry, packed);
    if (packed != entry.size) {
      refuse(entry, "takes " + std::to_string(packed) + " bytes in the archive and " +
                        std::to_string(entry.size) + " outside of it, though it is not compressed");
    }
    return entry;
  }

  /// Values that the entry itself cannot hold stand in the extra field, in this order.
  void read_extra(Bytes extra, Entry& entry, std::uint64_t& packed) const {
    const std::array<std::uint64_t*, 3> values{&entry.size, &packed, &entry.local};
    Bytes zip64;
    while (extra.size() >= 4) {
      const auto size = std::size_t{little_endian<std::uint16_t>(extra.subspan(2))};
      if (size > extra.size() - 4) break;
      if (little_endian<std::uint16_t>(extra) == kZip64Extra) zip64 = extra.subspan(4, size);
      extra = extra.subspan(4 + size);
    }
    for (std::uint64_t* value : values) {
      if (*value != kAllOnes32) continue;
      if (zip64.size() < 8) refuse(entry, "lacks the 64-bit values that it refers to");
      *value = little_endian<std::uint64_t>(zip64);
      zip64 = zip64.subspan(8);
    }
  }

  void place_data(Entry& entry, std::uint64_t limit) const {
    if (!fits(entry.local, kLocalSize, limit) || at<std::uint32_t>(entry.local) != kLocalSignature) {
      refuse(entry, "has no header at byte " + std::to_string(entry.local));
    }
    const std::uint64_t name = at<std::uint16_t>(entry.local + 26);
    const std::uint64_t header = kLocalSize + name + at<std::uint16_t>(entry.local + 28);
    if (!fits(entry.local, header, limit) ||
        as_text(file_.subspan(entry.local + kLocalSize, name)) != entry.name) {
      refuse(entry, "has another name in its own header");
    }
    entry.data = entry.local + header;
    if (!fits(entry.data, entry.size, limit)) {
      refuse(entry, "of " + std::to_string(entry.size) + " bytes at " + std::to_string(entry.data) +
                        " does not end before the directory at " + std::to_string(limit));
    }
  }

  void check_apart(std::vector<Entry>& entries) const {
    std::ranges::sort(entries, {}, &Entry::local);
    for (std::size_t i = 1; i < entries.size(); ++i) {
      if (entries[i - 1].data + entries[i - 1].size > entries[i].local) {
        fail("the entries " + shorten(entries[i - 1].name) + " and " + shorten(entries[i].name) +
             " share bytes");
      }
    }
  }

  Bytes file_;
  const std::string& source_;
};

}  // namespace

ZipEntries read_zip(Bytes file, const std::string& source) {
  return ZipReader(file, source).read();
}

}  // namespace qgen
