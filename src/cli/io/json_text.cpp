#include "cli/io/json_text.h"

#include <nlohmann/json.hpp>

#include "qgen/base/utf8.h"

namespace qgen::cli {

std::string json_string(std::string_view bytes) {
  return json_text(nlohmann::json(replace_invalid_utf8(bytes)));
}

}  // namespace qgen::cli
