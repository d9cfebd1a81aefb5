#pragma once

#include <string>
#include <string_view>

namespace qgen::unicode {

/// `text` in Unicode normalization form C as the reference package's tables define it; bytes that are not
/// UTF-8 stay where they are and combine with nothing. Gives `text` itself if it is normal already, else a
/// view of `buffer`, which is overwritten.
std::string_view nfc(std::string_view text, std::string& buffer);

}  // namespace qgen::unicode
