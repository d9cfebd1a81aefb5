#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string_view>
#include <vector>

#include "qgen/base/bytes.h"
#include "qgen/engine/engine.h"

namespace qgen {

/// What the loop needs of a session and its engine, so that tests can put a script in their place. The
/// contracts are those of Session, Engine and Tokenizer.
class Source {
 public:
  virtual ~Source() = default;
  virtual Logits feed(std::span<const TokenId> tokens, Want want,
                      const std::function<bool(std::int64_t done)>& progress) = 0;
  virtual void rewind(std::int64_t position) = 0;
  /// Drops the oldest token after the first `keep`.
  virtual void slide(std::int64_t keep) = 0;
  [[nodiscard]] virtual std::int64_t position() const = 0;
  [[nodiscard]] virtual std::int64_t context() const = 0;
  [[nodiscard]] virtual const std::vector<bool>& allowed() const = 0;
  [[nodiscard]] virtual bool is_end(TokenId id) const = 0;
  [[nodiscard]] virtual bool is_special(TokenId id) const = 0;
  [[nodiscard]] virtual std::string_view bytes(TokenId id) const = 0;
};

}  // namespace qgen
