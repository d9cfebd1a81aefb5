#pragma once

#include <cstdint>
#include <string>

namespace qgen::cli {

class OptionSet;

/// Which model, and on what it runs.
struct ModelOptions {
  std::string path;  ///< of -m
  std::string checkpoint, vocab, merges, tokenizer;
  std::int64_t heads = 0;  ///< 0: the checkpoint says
  std::string device = "auto";
  std::string kernels;  ///< empty: the best
  std::string weights = "auto";
  std::string kv = "auto";
  std::string packed;        ///< file of packed weights; empty: none
  std::int64_t threads = 0;  ///< 0: chosen
  std::int64_t context = 0;  ///< 0: the model's own
  std::int64_t lookup = 8;   ///< tokens guessed from the text at most; 0: none

  [[nodiscard]] bool has_vocabulary() const noexcept { return !vocab.empty() || !tokenizer.empty(); }
  [[nodiscard]] bool is_builtin() const noexcept {
    return path.empty() && checkpoint.empty() && !has_vocabulary();
  }
};

/// Which of its tokenizer's and weights' files a command reads.
enum class Needed { model, tokenizer };

/// -m and --checkpoint with its companions.
void declare_model(OptionSet& set, ModelOptions& options);
/// Throws Error{usage} where they contradict each other or one of them is missing.
void check_model(const ModelOptions& options, Needed needed);
/// -t.
void declare_threads(OptionSet& set, ModelOptions& options);
/// -t and --kernels.
void declare_processor(OptionSet& set, ModelOptions& options);
/// --device, -c, --kv, --lookup and the like.
void declare_execution(OptionSet& set, ModelOptions& options);

}  // namespace qgen::cli
