#include "qgen/weights/torch_model.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "qgen/base/error.h"
#include "qgen/base/mapped_file.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"
#include "weights/torch/torch_dict.h"
#include "weights/torch/torch_file.h"
#include "weights/torch/torch_names.h"
#include "weights/torch/torch_settings.h"

// In both kinds of model a layer is what models/ calls a layer of llama or qwen3: RMSNorm, rotary attention
// and a gated feed-forward part, before each of which the input is normalised. The course turns neighbouring
// elements of q and k by one angle; the book turns element i and i + d/2, as Hugging Face does.

namespace qgen {
namespace {

constexpr double kCourseTheta = 10000, kCourseEps = 1e-5;
constexpr double kBookTheta = 1e6, kBookEps = 1e-6;
constexpr std::int64_t kBookContext = 40960;

/// A tensor of the state dict under its name without wrappers.
using State = std::map<std::string, const PickleValue*, std::less<>>;

/// The checkpoint's dict and the state dict in it, or the same dict twice.
struct Contents {
  std::vector<PickleMember> checkpoint, state;
};

Contents read_contents(const TorchFile& file) {
  const Pickle& pickle = file.pickle();
  const PickleValue& root = pickle[pickle.root];
  const auto checkpoint = dict_members(pickle, root);
  if (!checkpoint) {
    throw Error(ErrorKind::file, file.source() +
                                     ": a dict expected (a state dict, or one with model_state_dict), " +
                                     pickle.describe(root) + " found");
  }
  for (const std::string_view key : {"model_state_dict", "model_state", "state_dict", "model"}) {
    const PickleValue* value = find_member(*checkpoint, key);
    if (value == nullptr) continue;
    if (auto state = dict_members(pickle, *value)) return {*checkpoint, *std::move(state)};
    throw Error(ErrorKind::file, file.source() + ": " + std::string(key) + ": a state dict expected, " +
                                     pickle.describe(*value) + " found");
  }
  return {*checkpoint, *checkpoint};
}

State read_state(const TorchFile& file, const std::vector<PickleMember>& members) {
  State state;
  for (const auto& [key, value] : members) {
    if (key->kind != PickleKind::text) continue;
    const std::string name = without_wrappers(key->text);
    if (!state.emplace(name, value).second) {
      throw Error(ErrorKind::file, file.source() + ": tensor " + shorten(name) +
                                       " occurs twice (names that wrappers changed count as the same)");
    }
  }
  return state;
}

const TorchNames& recognise(const TorchFile& file, const State& state) {
  for (const TorchNames* names : {&kCourseNames, &kBookNames}) {
    if (state.contains(names->embedding)) return *names;
  }
  std::string found = "no tensors";
  for (const auto& [name, value] : state) {
    if (!file.is_tensor(*value)) continue;
    found = "tensor " + shorten(name);
    break;
  }
  throw Error(ErrorKind::unsupported, file.source() + ": " + std::string(kCourseNames.embedding) + " (" +
                                          std::string(kCourseNames.title) + ") or " +
                                          std::string(kBookNames.embedding) + " (" +
                                          std::string(kBookNames.title) + ") expected, " + found + " found");
}

/// Brings a state dict under the names of the published checkpoints.
class Translator {
 public:
  Translator(const TorchFile& file, const TorchNames& names, const State& state)
      : file_(file), names_(names), state_(state) {}

  void run() {
    for (const auto& [name, value] : state_) add(name, *value);
    check_complete();
  }

  [[nodiscard]] std::int64_t layers() const noexcept { return layers_; }
  [[nodiscard]] bool has_head() const noexcept { return state_.contains(names_.head); }
  /// Sizes of a matrix, or of a vector with 1 as the first, by the file's own name.
  [[nodiscard]] std::pair<std::int64_t, std::int64_t> shape(const std::string& name) const {
    std::int64_t layer = 0;
    const StoredTensor& tensor = tensors_.at(*translate(names_, name, layer));
    const bool vector = tensor.shape.size() == 1;
    if ((!vector && tensor.shape.size() != 2) || std::ranges::find(tensor.shape, 0) != tensor.shape.end()) {
      fail("tensor " + name + ": one or two sizes from 1 on expected, " + shape_text(tensor.shape) +
           " found");
    }
    return {vector ? 1 : tensor.shape.front(), tensor.shape.back()};
  }
  /// The name of a tensor of the first layer.
  [[nodiscard]] std::string first(std::string_view name) const {
    return std::string(names_.blocks) + "0." + std::string(name);
  }
  [[nodiscard]] Checkpoint take(std::vector<MappedFile> files) {
    return Checkpoint::assemble(
        {file_.source(), std::move(files), std::move(copies_.buffers), std::move(tensors_)});
  }

 private:
  [[noreturn]] void fail(const std::string& reason) const {
    throw Error(ErrorKind::file, file_.source() + ": " + reason);
  }

  void add(const std::string& name, const PickleValue& value) {
    std::int64_t layer = -1;
    const std::optional<std::string> translated = translate(names_, name, layer);
    if (translated) {
      StoredTensor tensor = file_.tensor(value, name, copies_);
      tensor.file += " (" + name + ")";
      tensors_.emplace(*translated, std::move(tensor));
      layers_ = std::max(layers_, layer + 1);
    } else if (file_.is_tensor(value) && !is_buffer(name)) {
      throw Error(ErrorKind::unsupported, file_.source() + ": tensor " + shorten(name) + " has no place in " +
                                              std::string(names_.title));
    }
  }

  void check_complete() const {
    const auto require = [&](const std::string& name) {
      if (!state_.contains(name)) fail("tensor " + name + " is missing");
    };
    for (const NamePair& pair : names_.common) {
      if (pair.first != names_.head) require(std::string(pair.first));
    }
    if (layers_ == 0) require(first(names_.query));
    for (std::int64_t layer = 0; layer < layers_; ++layer) {
      for (const NamePair& pair : names_.in_layer) {
        require(std::string(names_.blocks) + std::to_string(layer) + "." + std::string(pair.first));
      }
    }
  }

  const TorchFile& file_;
  const TorchNames& names_;
  const State& state_;
  std::int64_t layers_ = 0;
  TensorCopies copies_;
  Checkpoint::Tensors tensors_;
};

/// What the configuration states must be what the tensors have.
void check_setting(const std::string& source, const Setting& setting, std::int64_t value,
                   std::string_view tensor) {
  if (setting.key.empty() || setting.value == value) return;
  throw Error(ErrorKind::file, source + ": the configuration states " + setting.key + " " +
                                   std::to_string(setting.value) + ", " + std::string(tensor) + " says " +
                                   std::to_string(value));
}

/// Heads as configured or asked for. Throws where nobody says or two disagree.
std::int64_t choose_heads(const std::string& source, const TorchSettings& settings, std::int64_t asked) {
  const std::int64_t stated = settings.heads.value;
  if (stated == 0 && asked == 0) {
    throw Error(
        settings.unusable.empty() ? ErrorKind::usage : ErrorKind::file,
        source +
            ": how many heads attention has follows neither from the tensors nor from a configuration (" +
            (settings.unusable.empty() ? "model_config or config with num_heads" : settings.unusable) +
            "): give --heads N");
  }
  if (stated != 0 && asked != 0 && stated != asked) {
    throw Error(ErrorKind::usage, source + ": --heads " + std::to_string(asked) +
                                      ", but the configuration states " + settings.heads.key + " " +
                                      std::to_string(stated));
  }
  return stated != 0 ? stated : asked;
}

/// The part of `whole` that each of `count` has.
std::int64_t divide(const std::string& source, std::int64_t whole, std::int64_t count,
                    const std::string& what) {
  if (whole % count == 0) return whole / count;
  throw Error(ErrorKind::file, source + ": " + what + ": " + std::to_string(whole) + " is no multiple of " +
                                   std::to_string(count));
}

ModelConfig common_config(const TorchFile& file, const TorchNames& names, const Translator& tensors) {
  ModelConfig config;
  config.source = file.source();
  const auto [vocab, width] = tensors.shape(std::string(names.embedding));
  config.vocab_size = vocab;
  config.hidden_size = width;
  config.num_hidden_layers = tensors.layers();
  config.intermediate_size = tensors.shape(tensors.first(names.gate)).first;
  return config;
}

ModelConfig course_config(const TorchFile& file, const Contents& contents, const Translator& tensors,
                          const TorchHints& hints) {
  const std::string& source = file.source();
  const TorchNames& names = kCourseNames;
  const TorchSettings settings = read_torch_settings(file.pickle(), contents.checkpoint, source);
  ModelConfig config = common_config(file, names, tensors);
  check_setting(source, settings.vocab, config.vocab_size, names.embedding);
  check_setting(source, settings.width, config.hidden_size, names.embedding);
  check_setting(source, settings.layers, config.num_hidden_layers, "the number of layers");
  check_setting(source, settings.feed_forward, config.intermediate_size, tensors.first(names.gate));

  const std::int64_t heads = choose_heads(source, settings, hints.heads);
  config.model_type = "llama";
  config.num_attention_heads = heads;
  config.head_dim = divide(source, tensors.shape(tensors.first(names.query)).first, heads,
                           "rows of " + tensors.first(names.query) + ", which the heads share");
  config.num_key_value_heads = divide(source, tensors.shape(tensors.first(names.key)).first, config.head_dim,
                                      "rows of " + tensors.first(names.key) + ", a head's size each");
  check_setting(source, settings.kv_heads, config.num_key_value_heads, tensors.first(names.key));
  config.rms_norm_eps = settings.eps.value_or(kCourseEps);
  config.rope.theta = settings.theta.value_or(kCourseTheta);
  config.rope.adjacent_pairs = true;
  const std::int64_t unknown = hints.context == 0 ? kCourseContext : hints.context;
  config.max_position_embeddings = settings.context.value == 0 ? unknown : settings.context.value;
  config.tie_word_embeddings = settings.tied;
  return config;
}

ModelConfig book_config(const TorchFile& file, const Translator& tensors, const TorchHints& hints) {
  const TorchNames& names = kBookNames;
  ModelConfig config = common_config(file, names, tensors);
  config.model_type = "qwen3";
  config.head_dim = tensors.shape(tensors.first(names.query_norm)).second;
  const auto heads = [&](std::string_view name) {
    return divide(file.source(), tensors.shape(tensors.first(name)).first, config.head_dim,
                  "rows of " + tensors.first(name) + ", a head's size each");
  };
  config.num_attention_heads = heads(names.query);
  config.num_key_value_heads = heads(names.key);
  if (hints.heads != 0 && hints.heads != config.num_attention_heads) {
    throw Error(ErrorKind::usage, file.source() + ": --heads " + std::to_string(hints.heads) +
                                      ", but the tensors have " + std::to_string(config.num_attention_heads));
  }
  config.rms_norm_eps = kBookEps;
  config.rope.theta = kBookTheta;
  config.max_position_embeddings = kBookContext;
  config.tie_word_embeddings = false;
  return config;
}

TorchModel read(Bytes data, std::string source, const TorchHints& hints, std::vector<MappedFile> files) {
  const TorchFile file(data, std::move(source));
  const Contents contents = read_contents(file);
  const State state = read_state(file, contents.state);
  const TorchNames& names = recognise(file, state);
  Translator tensors(file, names, state);
  tensors.run();
  ModelConfig config = &names == &kCourseNames ? course_config(file, contents, tensors, hints)
                                               : book_config(file, tensors, hints);
  if (!tensors.has_head() && !*config.tie_word_embeddings) {
    throw Error(ErrorKind::file, file.source() + ": tensor " + std::string(names.head) + " is missing");
  }
  return {std::move(config), tensors.take(std::move(files))};
}

}  // namespace

TorchModel read_torch_model(const std::filesystem::path& path, const TorchHints& hints) {
  std::vector<MappedFile> files;
  const Bytes data = files.emplace_back(path).bytes();
  return read(data, escape_control(path.string()), hints, std::move(files));
}

TorchModel read_torch_model(Bytes data, std::string_view source, const TorchHints& hints) {
  return read(data, escape_control(source), hints, {});
}

}  // namespace qgen
