#include "weights/torch/torch_settings.h"

#include <initializer_list>
#include <string_view>
#include <utility>

#include "qgen/base/error.h"
#include "qgen/base/text.h"

namespace qgen {
namespace {

constexpr std::int64_t kMaxDimension = std::int64_t{1} << 31;
constexpr double kMaxTheta = 1e30;
using Keys = std::initializer_list<std::string_view>;

class SettingsReader {
 public:
  SettingsReader(const Pickle& pickle, std::vector<PickleMember> members, std::string source)
      : pickle_(pickle), members_(std::move(members)), source_(std::move(source)) {}

  Setting dimension(Keys keys) const {
    Setting setting;
    for (const std::string_view key : keys) {
      const PickleValue* value = find(key);
      if (value == nullptr) continue;
      if (value->kind != PickleKind::integer || value->integer < 1 || value->integer > kMaxDimension) {
        fail(key, "an integer from 1 to 2^31 expected, " + pickle_.describe(*value) + " found");
      }
      if (!setting.key.empty() && setting.value != value->integer) fail_twice(setting.key, key);
      setting = {std::string(key), value->integer};
    }
    return setting;
  }

  /// Below `limit`. None is no value here: it may well say that the model has no such thing.
  std::optional<double> positive(Keys keys, double limit) const {
    std::optional<double> result;
    std::string_view first;
    for (const std::string_view key : keys) {
      const PickleValue* value = find_member(members_, key);
      if (value == nullptr) continue;
      const bool integer = value->kind == PickleKind::integer;
      const double number = integer ? static_cast<double>(value->integer) : value->number;
      if ((!integer && value->kind != PickleKind::number) || !(number > 0 && number < limit)) {
        fail(key, "a number above 0 and below " + shortest(limit) + " expected, " +
                      (integer || value->kind != PickleKind::number ? pickle_.describe(*value)
                                                                    : shortest(number)) +
                      " found");
      }
      if (result && *result != number) fail_twice(first, key);
      result = number;
      first = key;
    }
    return result;
  }

  bool flag(Keys keys) const {
    bool result = false;
    for (const std::string_view key : keys) {
      const PickleValue* value = find(key);
      if (value == nullptr) continue;
      if (value->kind != PickleKind::boolean) {
        fail(key, "True or False expected, " + pickle_.describe(*value) + " found");
      }
      result |= value->integer != 0;
    }
    return result;
  }

 private:
  /// None counts as not stated.
  [[nodiscard]] const PickleValue* find(std::string_view key) const noexcept {
    const PickleValue* value = find_member(members_, key);
    return value == nullptr || value->kind == PickleKind::none ? nullptr : value;
  }
  [[noreturn]] void fail(std::string_view key, const std::string& reason) const {
    throw Error(ErrorKind::file, source_ + ": " + std::string(key) + ": " + reason);
  }
  [[noreturn]] void fail_twice(std::string_view first, std::string_view second) const {
    fail(first, "contradicts " + std::string(second));
  }

  const Pickle& pickle_;
  std::vector<PickleMember> members_;
  std::string source_;
};

/// The dict itself, or the one in it that is about the model.
std::vector<PickleMember> innermost(const Pickle& pickle, std::vector<PickleMember> members) {
  for (const std::string_view key : {"model_config", "model"}) {
    const PickleValue* inner = find_member(members, key);
    if (inner == nullptr) continue;
    if (auto found = dict_members(pickle, *inner)) return *std::move(found);
  }
  return members;
}

}  // namespace

TorchSettings read_torch_settings(const Pickle& pickle, const std::vector<PickleMember>& checkpoint,
                                  const std::string& source) {
  TorchSettings settings;
  for (const std::string_view name : {"model_config", "config"}) {
    const PickleValue* value = find_member(checkpoint, name);
    if (value == nullptr) continue;
    auto members = dict_members(pickle, *value);
    if (!members) {
      settings.unusable = std::string(name) + ": a dict expected, " + pickle.describe(*value) + " found";
      continue;
    }
    const SettingsReader read(pickle, innermost(pickle, *std::move(members)),
                              source + ": " + std::string(name));
    settings.vocab = read.dimension({"vocab_size", "vocabulary_size", "n_vocab"});
    settings.context = read.dimension(
        {"context_length", "max_seq_len", "block_size", "max_position_embeddings", "seq_len",
         "sequence_length", "max_sequence_length", "context_len", "context_size", "ctx_len", "n_ctx"});
    settings.width = read.dimension(
        {"d_model", "hidden_size", "n_embd", "dim", "emb_dim", "embed_dim", "embedding_dim", "model_dim"});
    settings.layers =
        read.dimension({"num_layers", "n_layers", "n_layer", "num_hidden_layers", "num_blocks"});
    settings.heads = read.dimension({"num_heads", "n_heads", "n_head", "num_attention_heads"});
    settings.kv_heads = read.dimension({"num_kv_heads", "n_kv_heads", "num_key_value_heads"});
    settings.feed_forward =
        read.dimension({"d_ff", "dff", "ff_dim", "d_ffn", "ffn_dim", "d_feedforward", "intermediate_size"});
    settings.theta = read.positive({"rope_theta", "theta", "rope_base"}, kMaxTheta);
    settings.eps = read.positive({"rms_norm_eps", "norm_eps", "rmsnorm_eps"}, 1);
    settings.tied = read.flag({"tie_word_embeddings", "tie_embeddings", "tie_weights", "weight_tying"});
    settings.unusable.clear();
    break;
  }
  return settings;
}

}  // namespace qgen
