// A whole model: config.json, generation_config.json, tokenizer.json, tokenizer_config.json and
// model.safetensors with a NUL between each. It loads, or gives an Error; what loads is fed a text.

#include <algorithm>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "parts.h"
#include "qgen/base/error.h"
#include "qgen/engine/engine.h"

namespace {

using qgen::fuzz::check;

constexpr std::size_t kMostBytes = 1 << 16;
constexpr std::size_t kMostTokens = 24;

qgen::Bytes as_bytes(std::string_view part) {
  return std::as_bytes(std::span(part.data(), part.size()));
}

void use(const qgen::Engine& engine) {
  std::vector<qgen::TokenId> ids = engine.tokenizer().encode("ab ba <s> \xFF", {.parse_special = true});
  ids.resize(std::min({ids.size(), kMostTokens, static_cast<std::size_t>(engine.context())}));
  if (ids.empty()) return;
  qgen::Session session = engine.new_session();
  const auto vocab = static_cast<std::size_t>(engine.vocab());
  check(session.feed(ids, qgen::Want::all).values.size() == ids.size() * vocab);
  if (session.position() == engine.context()) return;
  const qgen::TokenId best = session.feed(std::span(ids).first(1), qgen::Want::best).best;
  check(best < engine.vocab() && (best < 0 || engine.tokenizer().is_known(best)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > kMostBytes) return 0;
  const auto parts = qgen::fuzz::parts_of<5>({reinterpret_cast<const char*>(data), size});
  const qgen::EmbeddedModel model{
      "input",           as_bytes(parts[0]), as_bytes(parts[1]), as_bytes(parts[2]), as_bytes(parts[3]),
      as_bytes(parts[4])};
  qgen::EngineOptions options;
  options.device_options.threads = 1;
  try {
    use(qgen::Engine::from_embedded(model, options, qgen::Log()));
  } catch (const qgen::Error& error) {
    qgen::fuzz::check_shown(error.what());
  }
  return 0;
}
