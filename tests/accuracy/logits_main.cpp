// qgen_logits MODEL WEIGHTS KV KERNELS STEP OUT < IDS: for each line of token ids a fresh session; appends
// the logits of all its positions to OUT as f32, [tokens, V]. STEP tokens are fed at a time (16 or fewer: the
// arithmetic of decoding). KERNELS may be "best". For comparing ways to hold numbers with a reference.

#include <algorithm>
#include <exception>
#include <fstream>
#include <iostream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "qgen/engine/engine.h"
#include "qgen/weights/gguf.h"

namespace {

void write_logits(qgen::Session& session, std::span<const qgen::TokenId> ids, std::size_t step,
                  std::ostream& out) {
  for (std::size_t i = 0; i < ids.size(); i += step) {
    const auto part = ids.subspan(i, std::min(step, ids.size() - i));
    const std::span<const float> logits = session.feed(part, qgen::Want::all).values;
    out.write(reinterpret_cast<const char*>(logits.data()),
              static_cast<std::streamsize>(logits.size_bytes()));
  }
}

int run(std::span<char*> arguments) {
  const std::vector<std::string> words(arguments.begin() + 1, arguments.end());
  if (words.size() != 6) {
    std::cerr << "usage: qgen_logits MODEL WEIGHTS KV KERNELS STEP OUT < IDS\n";
    return 2;
  }
  qgen::EngineOptions options;
  options.device_options.weights = words[1];
  options.device_options.kv = words[2];
  options.device_options.kernels = words[3] == "best" ? "" : words[3];
  const qgen::Engine engine = qgen::is_gguf(words[0]) ? qgen::Engine::from_gguf(words[0], options, {})
                                                      : qgen::Engine::from_folder(words[0], options, {});
  std::cerr << engine.executor().description() << "\n";
  std::ofstream out(words[5], std::ios::binary);
  for (std::string line; std::getline(std::cin, line);) {
    std::istringstream stream(line);
    std::vector<qgen::TokenId> ids;
    for (qgen::TokenId id = 0; stream >> id;) ids.push_back(id);
    qgen::Session session = engine.new_session();
    write_logits(session, ids, std::stoul(words[4]), out);
  }
  return out.flush() ? 0 : 8;
}

}  // namespace

int main(int count, char** values) {
  try {
    return run({values, static_cast<std::size_t>(count)});
  } catch (const std::exception& error) {
    std::cerr << "qgen_logits: " << error.what() << "\n";
    return 1;
  }
}
