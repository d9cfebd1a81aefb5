#include "qgen/base/utf8.h"
#include "qgen/weights/model_config.h"
#include "weights/config_reader.h"

namespace qgen {

GenerationConfig parse_generation_config(std::string_view json, std::string_view source) {
  const Json root = parse_json(json, source);
  const ConfigReader read(root, escape_control(source));
  GenerationConfig config;
  config.do_sample = read.boolean("do_sample");
  config.temperature = read.number("temperature", kNotNegative);
  config.top_k = read.integer("top_k", -1, std::numeric_limits<std::int32_t>::max());
  config.top_p = read.number("top_p", kUnit);
  config.min_p = read.number("min_p", kUnit);
  config.repetition_penalty = read.number("repetition_penalty", kPositive);
  config.eos_token_ids = read.token_ids("eos_token_id");
  return config;
}

}  // namespace qgen
