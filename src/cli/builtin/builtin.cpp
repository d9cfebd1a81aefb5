#include "cli/builtin/builtin.h"

// The assembler copies the files into read-only data; QGEN_BUILTIN_FOLDER comes from CMakeLists.txt. Tensors
// in the weights file are aligned relative to its start, so the start is aligned here.
#define QGEN_EMBED(symbol, file)                                  \
  asm(".pushsection .rodata\n"                                    \
      ".balign 64\n"                                              \
      ".hidden " #symbol "_begin\n.globl " #symbol                \
      "_begin\n"                                                  \
      ".hidden " #symbol "_end\n.globl " #symbol "_end\n" #symbol \
      "_begin:\n"                                                 \
      ".incbin \"" QGEN_BUILTIN_FOLDER "/" file "\"\n" #symbol    \
      "_end:\n"                                                   \
      ".byte 0\n"                                                 \
      ".popsection\n");                                           \
  extern "C" const std::byte symbol##_begin[], symbol##_end[];

QGEN_EMBED(qgen_tales_config, "config.json")
QGEN_EMBED(qgen_tales_generation_config, "generation_config.json")
QGEN_EMBED(qgen_tales_tokenizer, "tokenizer.json")
QGEN_EMBED(qgen_tales_tokenizer_config, "tokenizer_config.json")
QGEN_EMBED(qgen_tales_weights, "model.safetensors")

namespace qgen::cli {

const EmbeddedModel& builtin_model() noexcept {
  static const EmbeddedModel model{"tales",
                                   {qgen_tales_config_begin, qgen_tales_config_end},
                                   {qgen_tales_generation_config_begin, qgen_tales_generation_config_end},
                                   {qgen_tales_tokenizer_begin, qgen_tales_tokenizer_end},
                                   {qgen_tales_tokenizer_config_begin, qgen_tales_tokenizer_config_end},
                                   {qgen_tales_weights_begin, qgen_tales_weights_end}};
  return model;
}

}  // namespace qgen::cli
