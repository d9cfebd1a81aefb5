#pragma once

#include <cstdint>
#include <string>

namespace qgen::cli {

class OptionSet;

/// Which model, and on what it runs.
struct ModelOptions {
  std::string path;  ///< empty: the built-in model
  std::string device = "auto";
  std::string kernels;  ///< empty: the best
  std::string weights = "auto";
  std::string kv = "auto";
  std::int64_t threads = 0;  ///< 0: chosen
  std::int64_t context = 0;  ///< 0: the model's own
  std::int64_t lookup = 8;   ///< tokens guessed from the text at most; 0: none
};

/// -m.
void declare_model(OptionSet& set, ModelOptions& options);
/// -t.
void declare_threads(OptionSet& set, ModelOptions& options);
/// -t and --kernels.
void declare_processor(OptionSet& set, ModelOptions& options);
/// --device, -c, --kv, --lookup and the like.
void declare_execution(OptionSet& set, ModelOptions& options);

}  // namespace qgen::cli
