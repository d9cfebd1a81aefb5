#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>

#include "qgen/base/bytes.h"

namespace qgen {

/// The most entries that are read: a checkpoint has one for each tensor, the largest models have thousands.
inline constexpr std::uint64_t kMostZipEntries = 1'000'000;

/// The entries of a zip archive by name, views into the file.
using ZipEntries = std::map<std::string_view, Bytes, std::less<>>;

/// Reads the directory of an archive whose entries are stored as they are (what torch.save writes), zip64
/// included; checksums are not compared. Every offset and size is checked. Throws Error{file} naming what is
/// damaged; refuses by name archives in several parts, entries that are compressed or encrypted, names that
/// occur twice and entries that share bytes. `source` names the file in messages and is escaped already.
ZipEntries read_zip(Bytes file, const std::string& source);

}  // namespace qgen
