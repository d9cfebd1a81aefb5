#include "weights/stacked_experts.h"

#include <array>
#include <string>
#include <string_view>
#include <utility>

#include "qgen/base/error.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"

namespace qgen {
namespace {

constexpr std::string_view kGateUp = ".experts.gate_up_proj";
constexpr std::string_view kDown = ".experts.down_proj";

/// Rows [first, first + rows) of each expert's matrix, under a name of their own.
struct Part {
  std::string_view name;
  std::int64_t first, rows;
};

[[noreturn]] void refuse(const std::string& name, const StoredTensor& tensor, const std::string& expected) {
  throw Error(ErrorKind::file, tensor.file + ": tensor " + shorten(name) + ": " + expected + " expected, " +
                                   shape_text(tensor.shape) + " found");
}

void add_part(Checkpoint::Tensors& tensors, const std::string& name, const StoredTensor& stack,
              std::int64_t expert, const Part& part) {
  const std::int64_t rows = stack.shape[1], cols = stack.shape[2];
  const std::int64_t row = row_bytes(stack.dtype, cols);
  const auto offset = static_cast<std::size_t>((expert * rows + part.first) * row);
  StoredTensor own = stack;
  own.shape = {part.rows, cols};
  own.data = stack.data.subspan(offset, static_cast<std::size_t>(part.rows * row));
  const std::string prefix = name.substr(0, name.rfind('.') + 1);
  const auto [place, added] = tensors.try_emplace(
      prefix + std::to_string(expert) + "." + std::string(part.name) + ".weight", std::move(own));
  if (!added) {
    throw Error(ErrorKind::file, stack.file + ": tensor " + shorten(place->first) +
                                     " is there twice, by itself and within " + shorten(name));
  }
}

void split(Checkpoint::Tensors& tensors, const std::string& name, const StoredTensor& stack) {
  if (stack.shape.size() != 3 || stack.shape[0] > kMaxStackedExperts) {
    refuse(name, stack, "a stack of at most " + std::to_string(kMaxStackedExperts) + " matrices");
  }
  const std::int64_t rows = stack.shape[1];
  const bool down = name.ends_with(kDown);
  if (!down && rows % 2 != 0) refuse(name, stack, "an even number of rows");
  for (std::int64_t expert = 0; expert < stack.shape[0]; ++expert) {
    if (down) {
      add_part(tensors, name, stack, expert, {"down_proj", 0, rows});
    } else {
      add_part(tensors, name, stack, expert, {"gate_proj", 0, rows / 2});
      add_part(tensors, name, stack, expert, {"up_proj", rows / 2, rows / 2});
    }
  }
}

}  // namespace

void split_stacked_experts(Checkpoint::Tensors& tensors) {
  for (auto it = tensors.begin(); it != tensors.end();) {
    const auto at = it++;
    if (!at->first.ends_with(kGateUp) && !at->first.ends_with(kDown)) continue;
    const auto stack = tensors.extract(at);
    split(tensors, stack.key(), stack.mapped());
  }
}

}  // namespace qgen
