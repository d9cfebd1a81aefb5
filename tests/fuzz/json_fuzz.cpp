#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "qgen/base/error.h"
#include "qgen/base/json.h"
#include "qgen/base/utf8.h"

namespace {

/// Whether every string is valid UTF-8 and nothing is deeper than the parser's limit.
bool sound(const qgen::Json& json, std::size_t depth) {
  if (depth > qgen::JsonLimits{}.max_depth) return false;
  if (const std::string* text = json.as_string()) return qgen::replace_invalid_utf8(*text) == *text;
  if (const qgen::JsonArray* array = json.as_array()) {
    for (const qgen::Json& element : *array) {
      if (!sound(element, depth + 1)) return false;
    }
  }
  if (const qgen::JsonObject* object = json.as_object()) {
    for (const auto& [name, value] : *object) {
      if (json.find(name) != &value || !sound(value, depth + 1)) return false;
    }
  }
  return true;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    if (!sound(qgen::parse_json(text, "input"), 0)) std::abort();
  } catch (const qgen::Error& error) {
    if (error.kind() != qgen::ErrorKind::file) std::abort();
  }
  return 0;
}
