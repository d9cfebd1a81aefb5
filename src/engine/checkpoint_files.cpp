#include "engine/checkpoint_files.h"

#include <string>
#include <string_view>
#include <utility>

#include "qgen/base/mapped_file.h"
#include "qgen/weights/torch_model.h"
#include "qgen/weights/vocabulary.h"

namespace qgen {
namespace {

constexpr std::string_view kEndOfText = "<|endoftext|>", kEndOfTurn = "<|im_end|>";

Tokenizer tokenizer_of_vocabulary(const CheckpointFiles& files) {
  Vocabulary vocabulary = read_vocabulary(files.vocab, files.merges);
  VocabularyParts parts;
  parts.raw_bytes = vocabulary.raw_bytes;
  parts.split = "gpt-2";
  parts.merges = std::move(vocabulary.merges);
  parts.pieces.reserve(vocabulary.pieces.size());
  for (auto& [id, text] : vocabulary.pieces) {
    const bool end = text == kEndOfText;
    if (end) parts.end_ids.push_back(id);
    parts.pieces.push_back({id, {.text = std::move(text), .control = end, .added = end}});
  }
  return Tokenizer::from_parts(parts, files.vocab.string());
}

/// The package that goes with the book tells its models apart by the names of their tokenizers, and so do its
/// readers' folders: a base model's ends with <|endoftext|> only.
bool is_of_base_model(const std::filesystem::path& tokenizer) {
  const std::string name = tokenizer.filename().string();
  return name.find("base") != std::string::npos && name.find("reasoning") == std::string::npos;
}

}  // namespace

Tokenizer read_checkpoint_tokenizer(const CheckpointFiles& files) {
  if (files.tokenizer.empty()) return tokenizer_of_vocabulary(files);
  const MappedFile file(files.tokenizer);
  return Tokenizer::from_json(as_text(file.bytes()), {}, files.tokenizer.string());
}

ModelFiles read_checkpoint_files(const CheckpointFiles& files, std::int64_t context) {
  TorchModel model = read_torch_model(files.checkpoint, {.heads = files.heads, .context = context});
  Tokenizer tokenizer = read_checkpoint_tokenizer(files);
  const auto add_end = [&](std::string_view spelling) {
    if (const auto id = tokenizer.find(spelling)) model.config.eos_token_ids.push_back(*id);
  };
  add_end(kEndOfText);
  if (!files.tokenizer.empty() && !is_of_base_model(files.tokenizer)) add_end(kEndOfTurn);
  return {std::move(model.config), {}, finished(std::move(tokenizer)), std::move(model.checkpoint)};
}

}  // namespace qgen
