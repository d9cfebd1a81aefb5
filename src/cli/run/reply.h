#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cli/io/output.h"
#include "cli/run/run_options.h"
#include "qgen/generate/generate.h"
#include "qgen/tokenizer/tokenizer.h"

namespace qgen::cli {

/// Facts of a run that reports show besides the result.
struct RunFacts {
  std::uint64_t seed = 0;
  std::int64_t prompt_tokens = 0;
  double load_s = 0;
  std::string prompt;  ///< only with --echo
};

/// Puts a reply on stdout in one of the formats.
class ReplyWriter {
 public:
  virtual ~ReplyWriter() = default;
  /// Before the first token. All return false once the output is gone.
  virtual bool begin(const RunFacts& facts) = 0;
  virtual bool token(const TokenEvent& event) = 0;
  virtual bool end(const GenerateResult& result, const RunFacts& facts) = 0;
};

/// References must outlive the writer. `logprobs`: whether the result has them.
[[nodiscard]] std::unique_ptr<ReplyWriter> make_reply_writer(ReplyFormat format, Output& output,
                                                             const Tokenizer& tokenizer, bool logprobs);

/// Bytes of memory that the program held at most so far.
[[nodiscard]] std::int64_t peak_memory();

/// The line of --stats.
[[nodiscard]] std::string stats_line(const GenerateResult& result, const RunFacts& facts);

}  // namespace qgen::cli
