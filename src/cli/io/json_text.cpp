#include "cli/io/json_text.h"

#include <nlohmann/json.hpp>

#include "qgen/base/utf8.h"

namespace qgen::cli {

std::string json_text(const OrderedJson& value) {
  return value.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

std::string json_string(std::string_view bytes) {
  return json_text(OrderedJson(replace_invalid_utf8(bytes)));
}

OrderedJson number_or_null(std::optional<double> value) {
  return value ? OrderedJson(*value) : OrderedJson();
}

}  // namespace qgen::cli
