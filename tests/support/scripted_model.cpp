#include "support/scripted_model.h"

#include <cstring>
#include <limits>
#include <utility>

#include "qgen/base/utf8.h"
#include "support/files.h"

namespace qgen::test {
namespace {

constexpr int kWidth = ScriptedModel::kRows;
constexpr int kHeadDim = 8;
constexpr int kHidden = 8;

std::size_t index(int value) {
  return static_cast<std::size_t>(value);
}

/// The letter that stands for a byte in a byte-level vocabulary (Radford et al. 2019): printable ones stand
/// for themselves, the others for the letters from U+0100 on.
std::string byte_letter(int byte) {
  const auto printable = [](int b) { return (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174; };
  int others = 0;
  for (int b = 0; b < byte; ++b) others += printable(b) ? 0 : 1;
  std::string letter;
  append_utf8(letter, static_cast<char32_t>(printable(byte) ? byte : 256 + others));
  return letter;
}

std::string json_escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return out;
}

std::string added_token(int id, const std::string& content) {
  return R"({"id":)" + std::to_string(id) + R"(,"content":")" + content +
         R"(","single_word":false,"lstrip":false,"rstrip":false,"normalized":false,"special":true})";
}

std::string tokenizer_json(bool adds_start) {
  std::string vocabulary;
  for (int byte = 0; byte < 256; ++byte) {
    vocabulary +=
        (byte == 0 ? "" : ",") + ("\"" + json_escape(byte_letter(byte)) + "\":" + std::to_string(byte));
  }
  const std::string start =
      R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<|start|>","type_id":0}},)"
      R"({"Sequence":{"id":"A","type_id":0}}],"pair":[{"Sequence":{"id":"A","type_id":0}},)"
      R"({"Sequence":{"id":"B","type_id":1}}],"special_tokens":{"<|start|>":{"id":"<|start|>","ids":[258],)"
      R"("tokens":["<|start|>"]}}})";
  return R"({"version":"1.0","truncation":null,"padding":null,"added_tokens":[)" +
         added_token(ScriptedModel::kEnd, "<|end|>") + "," +
         added_token(ScriptedModel::kOtherEnd, "<|stop|>") + "," +
         added_token(ScriptedModel::kStart, "<|start|>") +
         R"(],"normalizer":null,"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false,)"
         R"("trim_offsets":true,"use_regex":true},"post_processor":)" +
         (adds_start ? start : std::string("null")) +
         R"(,"decoder":{"type":"ByteLevel","add_prefix_space":true,"trim_offsets":true,"use_regex":true},)"
         R"("model":{"type":"BPE","dropout":null,"unk_token":null,"continuing_subword_prefix":null,)"
         R"("end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,"vocab":{)" +
         vocabulary + R"(},"merges":[]}})";
}

std::string config_json(std::int64_t context) {
  return R"({"architectures":["Qwen3ForCausalLM"],"model_type":"qwen3","attention_bias":false,)"
         R"("hidden_act":"silu","hidden_size":)" +
         std::to_string(kWidth) + R"(,"intermediate_size":)" + std::to_string(kHidden) + R"(,"head_dim":)" +
         std::to_string(kHeadDim) +
         R"(,"num_attention_heads":2,"num_key_value_heads":1,"num_hidden_layers":1,"rms_norm_eps":1e-06,)"
         R"("rope_theta":10000.0,"tie_word_embeddings":false,"torch_dtype":"float32","vocab_size":)" +
         std::to_string(ScriptedModel::kRows) + R"(,"max_position_embeddings":)" + std::to_string(context) +
         "}";
}

/// Collects tensors and writes them in safetensors format.
class TensorFile {
 public:
  void add(const std::string& name, const std::vector<int>& shape, const std::vector<float>& values) {
    std::string sizes;
    for (const int size : shape) sizes += (sizes.empty() ? "" : ",") + std::to_string(size);
    header_ += (header_.empty() ? "" : ",") + ("\"" + name + "\":{\"dtype\":\"F32\",\"shape\":[" + sizes +
                                               "],\"data_offsets\":[" + std::to_string(data_.size()));
    data_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float));
    header_ += "," + std::to_string(data_.size()) + "]}";
  }

  [[nodiscard]] std::string bytes() const {
    const std::string header = "{" + header_ + "}";
    std::string out(8, '\0');
    const std::uint64_t length = header.size();
    std::memcpy(out.data(), &length, 8);
    return out + header + data_;
  }

 private:
  std::string header_, data_;
};

std::vector<float> constant(int count, float value) {
  return std::vector<float>(index(count), value);
}

/// head[next][token] = 1: after the final norm the input is a single spike at the token.
std::vector<float> head_matrix(const ScriptedModel& model) {
  std::vector<float> head = constant(ScriptedModel::kRows * kWidth, 0);
  const auto cell = [&head](int row, int token) -> float& { return head[index(row * kWidth + token)]; };
  for (int token = 0; token < ScriptedModel::kKnown; ++token) {
    const auto found = model.next.find(token);
    cell(found == model.next.end() ? token : found->second, token) = 1;
    if (!model.padding_wins) continue;
    for (int row = ScriptedModel::kKnown; row < ScriptedModel::kRows; ++row) cell(row, token) = 2;
  }
  return head;
}

std::string weights(const ScriptedModel& model) {
  std::vector<float> identity = constant(ScriptedModel::kRows * kWidth, 0);
  for (int i = 0; i < kWidth; ++i) identity[index(i * kWidth + i)] = 1;
  if (model.not_finite) identity[index('N' * kWidth)] = std::numeric_limits<float>::quiet_NaN();
  TensorFile file;
  const std::string layer = "model.layers.0.";
  file.add("model.embed_tokens.weight", {ScriptedModel::kRows, kWidth}, identity);
  file.add(layer + "input_layernorm.weight", {kWidth}, constant(kWidth, 1));
  // The layer adds nothing: its output projections are zero.
  for (const auto& [name, rows] : {std::pair{"q", 2 * kHeadDim}, {"k", kHeadDim}, {"v", kHeadDim}}) {
    file.add(layer + "self_attn." + name + "_proj.weight", {rows, kWidth}, constant(rows * kWidth, 0.25F));
  }
  for (const std::string name : {"q", "k"}) {
    file.add(layer + "self_attn." + name + "_norm.weight", {kHeadDim}, constant(kHeadDim, 1));
  }
  file.add(layer + "self_attn.o_proj.weight", {kWidth, 2 * kHeadDim}, constant(kWidth * 2 * kHeadDim, 0));
  file.add(layer + "post_attention_layernorm.weight", {kWidth}, constant(kWidth, 1));
  for (const std::string name : {"gate", "up"}) {
    file.add(layer + "mlp." + name + "_proj.weight", {kHidden, kWidth}, constant(kHidden * kWidth, 0));
  }
  file.add(layer + "mlp.down_proj.weight", {kWidth, kHidden}, constant(kWidth * kHidden, 0));
  file.add("model.norm.weight", {kWidth}, constant(kWidth, 1));
  file.add("lm_head.weight", {ScriptedModel::kRows, kWidth}, head_matrix(model));
  return file.bytes();
}

}  // namespace

ScriptedModel& ScriptedModel::chain(const std::string& bytes) {
  for (std::size_t i = 0; i + 1 < bytes.size(); ++i) {
    next[static_cast<unsigned char>(bytes[i])] = static_cast<unsigned char>(bytes[i + 1]);
  }
  return *this;
}

void ScriptedModel::write(const std::filesystem::path& folder) const {
  std::filesystem::create_directories(folder);
  write_file(folder / "config.json", config_json(context));
  write_file(folder / "generation_config.json", generation_config);
  write_file(folder / "tokenizer.json", tokenizer_json(adds_start));
  std::string tokenizer_config = R"({"tokenizer_class":"PreTrainedTokenizerFast","eos_token":"<|end|>")";
  if (adds_start) tokenizer_config += R"(,"bos_token":"<|start|>")";
  if (!chat_template.empty()) tokenizer_config += R"(,"chat_template":")" + json_escape(chat_template) + "\"";
  write_file(folder / "tokenizer_config.json", tokenizer_config + "}");
  write_file(folder / "model.safetensors", weights(*this));
}

}  // namespace qgen::test
