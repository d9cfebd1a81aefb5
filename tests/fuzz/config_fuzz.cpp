#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "qgen/base/error.h"
#include "qgen/weights/model_config.h"
#include "weights/shard_index.h"

// One text is read as each of the JSON files of a model folder.

namespace {

template <typename Read>
void try_read(Read read) {
  try {
    if (!read()) std::abort();
  } catch (const qgen::Error& error) {
    const std::string_view message = error.what();
    if (message.find_first_of("\x1b\x07\r\n") != std::string_view::npos) std::abort();
  }
}

bool sound(const qgen::ModelConfig& config) {
  constexpr std::int64_t kMax = std::int64_t{1} << 31;
  for (const std::int64_t n :
       {config.hidden_size, config.num_hidden_layers, config.num_attention_heads, config.num_key_value_heads,
        config.head_dim, config.intermediate_size, config.vocab_size, config.max_position_embeddings,
        config.num_experts, config.num_experts_per_tok, config.moe_intermediate_size}) {
    if (n < 0 || n > kMax) return false;
  }
  return config.rms_norm_eps >= 0 && config.rms_norm_eps < 1 && std::isfinite(config.rope.theta) &&
         config.rope.theta >= 0;
}

bool sound(const qgen::GenerationConfig& config) {
  return config.temperature.value_or(0) >= 0 && config.top_p.value_or(0) <= 1 &&
         config.top_k.value_or(0) >= -1;
}

bool sound(const qgen::ShardIndex& index) {
  for (const std::string& shard : index.shards) {
    if (shard.empty() || shard == ".." || shard.find('/') != std::string::npos) return false;
  }
  return !index.shards.empty();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_read([&] { return qgen::parse_model_type(text, "input").size() <= size; });
  try_read([&] { return sound(qgen::parse_model_config(text, "input")); });
  try_read([&] { return sound(qgen::parse_generation_config(text, "input")); });
  try_read([&] { return sound(qgen::parse_shard_index(text, "input")); });
  return 0;
}
