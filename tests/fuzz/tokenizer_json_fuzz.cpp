// Any bytes as tokenizer.json, with a tokenizer_config.json behind a NUL if there is one: they load, or give
// an Error, and what loads can be used.

#include <algorithm>
#include <cstdint>
#include <string_view>

#include "qgen/base/error.h"
#include "qgen/tokenizer/tokenizer.h"

namespace {

void use(const qgen::Tokenizer& tokenizer) {
  for (const bool parse_special : {false, true}) {
    const auto ids =
        tokenizer.encode("He'll say <s> 12  e\xCC\x81\n\n\xFF <|x|>", {.parse_special = parse_special});
    for (const qgen::TokenId id : ids) {
      if (!tokenizer.is_known(id)) __builtin_trap();
    }
    static_cast<void>(tokenizer.decode(ids, parse_special));
  }
  for (qgen::TokenId id = -1; id < 300; ++id) {
    if (!tokenizer.is_known(id) && !tokenizer.bytes(id).empty()) __builtin_trap();
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view input(reinterpret_cast<const char*>(data), size);
  const std::size_t end = std::min(input.find('\0'), size);
  try {
    use(qgen::Tokenizer::from_json(input.substr(0, end), input.substr(std::min(end + 1, size)), "fuzz"));
  } catch (const qgen::Error&) {
  }
  return 0;
}
