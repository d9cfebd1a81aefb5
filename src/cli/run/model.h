#pragma once

#include <array>
#include <string>
#include <string_view>

#include "cli/io/messages.h"
#include "cli/options/model_options.h"
#include "qgen/engine/engine.h"
#include "qgen/tokenizer/tokenizer.h"

namespace qgen::cli {

/// How a step is computed, to see where speed comes from.
enum class Mode {
  naive,  ///< plain kernels, the whole sequence anew at each step
  cache,  ///< plain kernels and the cache
  fused,  ///< the best kernels, the whole sequence anew at each step
  all,    ///< the best kernels and the cache
};

/// The words of --mode, in the order of the enumeration.
inline constexpr std::array<std::string_view, 4> kModeWords{"naive", "cache", "fused", "all"};

[[nodiscard]] Mode mode_named(std::string_view word) noexcept;
/// Whether sessions of this mode keep no cache.
[[nodiscard]] constexpr bool recomputes(Mode mode) noexcept {
  return mode == Mode::naive || mode == Mode::fused;
}
/// The kernel table of this mode: the one that was forced, else "scalar" for plain kernels, empty for the
/// best.
[[nodiscard]] std::string kernels_of(Mode mode, const std::string& forced);

/// "tales (built in)" or the folder's or file's own name, as messages show it.
[[nodiscard]] std::string model_name(const ModelOptions& options);

/// Loads the model that the options name. Throws Error.
[[nodiscard]] Engine load_engine(const ModelOptions& options, Mode mode, Messages& messages);
/// Only its tokenizer.
[[nodiscard]] Tokenizer load_tokenizer(const ModelOptions& options);

}  // namespace qgen::cli
