// A process that makes many texts must not grow with their number.
#include <gtest/gtest.h>
#include <malloc.h>
#include <unistd.h>

#include <fstream>

#include "qgen/generate/generate.h"
#include "support/files.h"
#include "support/sanitized.h"
#include "support/scripted_model.h"

namespace qgen {
namespace {

struct Memory {
  std::size_t allocated = 0;  ///< bytes that the heap has handed out
  std::size_t mapped = 0;     ///< address space of the process
  std::size_t resident = 0;

  static Memory now() {
    const struct mallinfo2 heap = ::mallinfo2();
    Memory memory{heap.uordblks + heap.hblkhd, 0, 0};
    std::ifstream("/proc/self/statm") >> memory.mapped >> memory.resident;
    const auto page = static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
    memory.mapped *= page;
    memory.resident *= page;
    return memory;
  }
};

class FlatMemory : public ::testing::Test {
 protected:
  static constexpr std::int64_t kContext = 600;  // several pages of the cache

  static Engine load() {
    test::ScriptedModel model;
    model.chain("abcdefghijka");
    model.context = kContext;
    const test::TempFolder folder;
    model.write(folder.path() / "model");
    EngineOptions options;
    options.device_options.threads = 2;
    return Engine::from_folder(folder.path() / "model", options, Log());
  }

  /// One of many kinds of text: greedy or sampled, guessed or not, short or as long as the context and
  /// beyond.
  void generate_text(int kind) {
    SamplingOptions sampling;
    sampling.temperature = kind % 3 == 0 ? 0 : 0.8;
    sampling.repetition_penalty = kind % 5 == 0 ? 1.1 : 1;
    Sampler sampler(sampling);
    GenerateOptions options;
    options.max_tokens = 2 + kind % 7;
    options.stop = {"fg"};
    options.lookup = kind % 2 == 0 ? 8 : 0;
    options.logprobs = kind % 4 == 0 ? 3 : -1;
    options.context_full = ContextFull::slide;
    const std::int64_t length = kind % 20 == 19 ? kContext - 3 : 1 + kind;
    const std::vector<TokenId> prompt(static_cast<std::size_t>(length), 'a' + kind % 9);
    Session session = engine_.new_session();
    (void)generate(session, engine_, sampler, prompt, options, {});
    session.rewind(session.position() / 2);
    Session branch = session.fork();
    for (Session* each : {&session, &branch}) (void)each->feed(prompt_part(prompt), Want::all);
    (void)branch.slide(0, 1, Want::best);
  }

  void generate_texts(int rounds) {
    for (int round = 0; round < rounds; ++round) {
      for (int kind = 0; kind < 40; ++kind) generate_text(kind);
    }
  }

  Engine engine_ = load();

 private:
  static std::span<const TokenId> prompt_part(const std::vector<TokenId>& prompt) {
    return std::span(prompt).first(std::min<std::size_t>(prompt.size(), 20));
  }
};

TEST_F(FlatMemory, ThousandsOfTextsTakeNoMoreThanAFew) {
  if (test::kSanitized) GTEST_SKIP() << "sanitizers keep what was freed";
  generate_texts(5);
  const Memory before = Memory::now();
  generate_texts(60);
  const Memory after = Memory::now();
  EXPECT_EQ(after.allocated, before.allocated);
  EXPECT_LE(after.mapped, before.mapped + before.mapped / 100);
  EXPECT_LE(after.resident, before.resident + before.resident / 100);
}

}  // namespace
}  // namespace qgen
