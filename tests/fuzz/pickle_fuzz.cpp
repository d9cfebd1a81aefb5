// A pickle reads, with values that refer to each other only, or gives an Error; so does a vocabulary or a
// list of merges in it.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "parts.h"
#include "qgen/base/error.h"
#include "qgen/weights/vocabulary.h"
#include "weights/torch/pickle.h"
#include "weights/torch/torch_dict.h"

namespace {

using qgen::fuzz::check;
using qgen::fuzz::check_shown;

void read(qgen::Bytes bytes) {
  const qgen::Pickle pickle = qgen::read_pickle(bytes, "input");
  check(pickle.root < pickle.values.size());
  for (const qgen::PickleValue& value : pickle.values) {
    for (const qgen::PickleId id : value.items) check(id < pickle.values.size());
    check(value.text.size() <= bytes.size() && value.name.size() <= bytes.size());
    check_shown(pickle.describe(value));
    if (const auto members = qgen::dict_members(pickle, value)) {
      static_cast<void>(qgen::find_member(*members, "model"));
    }
  }
}

template <typename Action>
void attempt(const Action& action) {
  try {
    action();
  } catch (const qgen::Error& error) {
    check_shown(error.what());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace std::string_view_literals;
  const qgen::Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
  const qgen::NamedBytes input{bytes, "input"};
  attempt([&] { read(bytes); });
  attempt([&] { qgen::read_vocabulary(input, {qgen::as_bytes("\x80\x04]."sv), "merges"}); });
  attempt([&] { qgen::read_vocabulary({qgen::as_bytes("\x80\x04}."sv), "vocab"}, input); });
  attempt([&] { qgen::read_vocabulary({qgen::as_bytes("{}"sv), "vocab"}, input); });
  return 0;
}
