// An archive reads, with entries inside of it that do not overlap, or gives an Error.

#include <cstddef>
#include <cstdint>

#include "parts.h"
#include "qgen/base/error.h"
#include "weights/torch/zip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const qgen::Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
    std::size_t total = 0;
    volatile unsigned sum = 0;  // reads all of it
    for (const auto& [name, entry] : qgen::read_zip(bytes, "input")) {
      qgen::fuzz::check(name.size() <= size && entry.size() <= size);
      for (const std::byte byte : entry) sum = sum + std::to_integer<unsigned>(byte);
      total += entry.size();
    }
    qgen::fuzz::check(total <= size);
  } catch (const qgen::Error& error) {
    qgen::fuzz::check_shown(error.what());
  }
  return 0;
}
