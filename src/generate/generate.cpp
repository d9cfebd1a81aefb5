#include "qgen/generate/generate.h"

#include <algorithm>

#include "generate/loop.h"

namespace qgen {
namespace {

class SessionSource final : public Source {
 public:
  SessionSource(Session& session, const Engine& engine) : session_(session), engine_(engine) {}

  Logits feed(std::span<const TokenId> tokens, Want want,
              const std::function<bool(std::int64_t done)>& progress) override {
    return session_.feed(tokens, want, progress);
  }
  void rewind(std::int64_t position) override { session_.rewind(position); }
  void slide(std::int64_t keep) override { session_.slide(keep, 1, Want::none); }
  [[nodiscard]] std::int64_t position() const override { return session_.position(); }
  [[nodiscard]] std::int64_t context() const override { return engine_.context(); }
  [[nodiscard]] const std::vector<bool>& allowed() const override { return engine_.allowed(); }
  [[nodiscard]] bool is_end(TokenId id) const override {
    return std::binary_search(engine_.end_ids().begin(), engine_.end_ids().end(), id);
  }
  [[nodiscard]] bool is_special(TokenId id) const override { return engine_.tokenizer().is_special(id); }
  [[nodiscard]] std::string_view bytes(TokenId id) const override { return engine_.tokenizer().bytes(id); }

 private:
  Session& session_;
  const Engine& engine_;
};

}  // namespace

std::string_view to_string(StopReason reason) noexcept {
  switch (reason) {
    case StopReason::end:
      return "end";
    case StopReason::stop:
      return "stop";
    case StopReason::length:
      return "length";
    case StopReason::context:
      return "context";
    case StopReason::thinking:
      return "thinking";
    case StopReason::interrupted:
      return "interrupted";
    case StopReason::error:
      return "error";
  }
  return "";
}

GenerateResult generate(Session& session, const Engine& engine, Sampler& sampler,
                        std::span<const TokenId> prompt, const GenerateOptions& options,
                        const GenerateHooks& hooks) {
  SessionSource source(session, engine);
  return run_loop(source, sampler, prompt, options, hooks);
}

}  // namespace qgen
