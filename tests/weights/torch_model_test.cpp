#include "qgen/weights/torch_model.h"

#include <gmock/gmock.h>

#include <map>

#include "support/error_of.h"
#include "support/files.h"
#include "support/torch_bytes.h"

namespace qgen::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr std::int64_t kWidth = 8, kInner = 12, kVocab = 10;

/// A course model of two layers, and what is around it.
class CourseBytes {
 public:
  CourseBytes() {
    add("token_embeddings.weight", {kVocab, kWidth});
    for (const char* layer : {"layers.0.", "layers.1."}) {
      for (const char* norm : {"ln1", "ln2"}) add(std::string(layer) + norm + ".weight", {kWidth});
      for (const char* name : {"q_proj", "k_proj", "v_proj", "output_proj"}) {
        add(std::string(layer) + "attn." + name + ".weight", {kWidth, kWidth});
      }
      add(std::string(layer) + "ffn.w1.weight", {kInner, kWidth});
      add(std::string(layer) + "ffn.w2.weight", {kWidth, kInner});
      add(std::string(layer) + "ffn.w3.weight", {kInner, kWidth});
    }
    add("ln_final.weight", {kWidth});
    add("lm_head.weight", {kVocab, kWidth});
  }

  void add(const std::string& name, const std::vector<std::int64_t>& shape) {
    state_[name] = torch_.tensor(shape);
  }
  void put(const std::string& name, const std::string& value) { state_[name] = value; }
  void remove(const std::string& name) { state_.erase(name); }
  void prefix(const std::string& text) {
    std::map<std::string, std::string> renamed;
    for (const auto& [name, value] : state_) renamed[text + name] = value;
    state_ = renamed;
  }

  [[nodiscard]] std::string state() const {
    std::vector<std::string> items;
    for (const auto& [name, value] : state_) {
      items.push_back(pickled_text(name));
      items.push_back(value);
    }
    return pickled_dict(items);
  }
  [[nodiscard]] std::string bare() const { return torch_.file(state()); }
  /// With a dict of these settings as `key`.
  [[nodiscard]] std::string with(const std::string& key,
                                 const std::map<std::string, std::int64_t>& settings) const {
    std::vector<std::string> items;
    for (const auto& [name, value] : settings) {
      items.push_back(pickled_text(name));
      items.push_back(pickled(value));
    }
    return with_value(key, pickled_dict(items));
  }
  [[nodiscard]] std::string with_value(const std::string& key, const std::string& value) const {
    return torch_.file(pickled_dict({pickled_text("model_state_dict"), state(), pickled_text(key), value}));
  }

 private:
  TorchBytes torch_;
  std::map<std::string, std::string> state_;
};

TorchModel read(const std::string& file, const TorchHints& hints = {}) {
  return read_torch_model(as_bytes(file), "x.pt", hints);
}

std::string refusal(const std::string& file, ErrorKind kind = ErrorKind::file,
                    const TorchHints& hints = {.heads = 2}) {
  return error_of([&] { read(file, hints); }, kind);
}

TEST(CourseModel, ShapesComeFromTheTensors) {
  const std::string file = CourseBytes().bare();
  const TorchModel model = read(file, {.heads = 2});
  EXPECT_EQ(model.config.model_type, "llama");
  EXPECT_EQ(model.config.vocab_size, kVocab);
  EXPECT_EQ(model.config.hidden_size, kWidth);
  EXPECT_EQ(model.config.intermediate_size, kInner);
  EXPECT_EQ(model.config.num_hidden_layers, 2);
  EXPECT_EQ(model.config.num_attention_heads, 2);
  EXPECT_EQ(model.config.num_key_value_heads, 2);
  EXPECT_EQ(model.config.head_dim, 4);
  EXPECT_TRUE(model.config.rope.adjacent_pairs);
  EXPECT_EQ(model.config.rope.theta, 10000);
  EXPECT_EQ(model.config.rms_norm_eps, 1e-5);
  EXPECT_EQ(model.config.max_position_embeddings, kCourseContext);
  EXPECT_EQ(model.checkpoint.tensors().size(), 3U + 2 * 9);
  EXPECT_NE(model.checkpoint.find("model.layers.1.mlp.up_proj.weight"), nullptr);
}

TEST(CourseModel, AnUnknownContextIsTheOneAskedFor) {
  const std::string bare = CourseBytes().bare();
  EXPECT_EQ(read(bare, {.heads = 2, .context = 1000}).config.max_position_embeddings, 1000);
  const std::string stated = CourseBytes().with("model_config", {{"num_heads", 2}, {"context_length", 64}});
  EXPECT_EQ(read(stated, {.context = 1000}).config.max_position_embeddings, 64);
}

TEST(CourseModel, SettingsHaveManyNames) {
  for (const char* heads : {"num_heads", "n_heads", "n_head", "num_attention_heads"}) {
    for (const char* key : {"model_config", "config"}) {
      const std::string file = CourseBytes().with(key, {{heads, 4}, {"rope_theta", 500}, {"block_size", 32}});
      const TorchModel model = read(file);
      EXPECT_EQ(model.config.num_attention_heads, 4);
      EXPECT_EQ(model.config.rope.theta, 500);
      EXPECT_EQ(model.config.max_position_embeddings, 32);
    }
  }
}

TEST(CourseModel, WithoutHeadsTheOptionIsNamed) {
  EXPECT_THAT(refusal(CourseBytes().bare(), ErrorKind::usage, {}), HasSubstr("--heads N"));
  EXPECT_THAT(refusal(CourseBytes().with("model_config", {{"d_model", 8}}), ErrorKind::usage, {}),
              HasSubstr("--heads N"));
  EXPECT_THAT(refusal(CourseBytes().with("model_config", {{"num_heads", 4}}), ErrorKind::usage),
              AllOf(HasSubstr("--heads 2"), HasSubstr("num_heads 4")));
  EXPECT_THAT(refusal(CourseBytes().bare(), ErrorKind::file, {.heads = 3}), HasSubstr("no multiple of 3"));
}

TEST(CourseModel, SettingsThatContradictTheTensorsOrEachOther) {
  for (const auto& [key, value] : std::map<std::string, std::int64_t>{
           {"vocab_size", 11}, {"d_model", 16}, {"num_layers", 3}, {"d_ff", 13}, {"num_kv_heads", 1}}) {
    EXPECT_THAT(refusal(CourseBytes().with("model_config", {{"num_heads", 2}, {key, value}})),
                AllOf(HasSubstr(key), HasSubstr(std::to_string(value))));
  }
  EXPECT_THAT(refusal(CourseBytes().with("model_config", {{"num_heads", 2}, {"n_heads", 4}})),
              HasSubstr("contradicts n_heads"));
}

TEST(CourseModel, SettingsOfOtherTypesAreNamed) {
  const auto with = [](const std::string& value) {
    return CourseBytes().with_value("model_config", pickled_dict({pickled_text("num_heads"), value}));
  };
  EXPECT_THAT(refusal(with(pickled(0))), HasSubstr("num_heads"));
  EXPECT_THAT(refusal(with(pickled(std::int64_t{1} << 40))), HasSubstr("num_heads"));
  EXPECT_THAT(refusal(with("\x88")), HasSubstr("True found"));
  EXPECT_THAT(refusal(with(pickled_text("2"))), HasSubstr("a text found"));
  EXPECT_THAT(refusal(with(pickled_call(pickled_global("numpy._core.multiarray", "scalar"), {}))),
              HasSubstr("numpy._core.multiarray.scalar"));
  const std::string no_positions = CourseBytes().with_value(
      "model_config", pickled_dict({pickled_text("num_heads"), "K\x02", pickled_text("rope_theta"), "N"}));
  EXPECT_THAT(refusal(no_positions), AllOf(HasSubstr("rope_theta"), HasSubstr("None")));
}

TEST(CourseModel, ObjectsAreIgnoredWhereTheyAreNotNeededAndNamedWhereTheyAre) {
  const std::string command = pickled_call(pickled_global("os", "system"), {pickled_text("exit 1")});
  EXPECT_EQ(read(CourseBytes().with_value("optimizer", command), {.heads = 2}).config.num_hidden_layers, 2);
  const std::string settings = pickled_call(pickled_global("argparse", "Namespace"), {}) + "}b";
  EXPECT_THAT(refusal(CourseBytes().with_value("config", settings), ErrorKind::file, {}),
              AllOf(HasSubstr("argparse.Namespace"), HasSubstr("--heads")));
  EXPECT_EQ(read(CourseBytes().with_value("config", settings), {.heads = 2}).config.num_attention_heads, 2);
  CourseBytes weight;
  weight.put("layers.1.ln2.weight", command);
  EXPECT_THAT(refusal(weight.bare()), AllOf(HasSubstr("layers.1.ln2.weight"), HasSubstr("os.system")));
  EXPECT_THAT(refusal(TorchBytes().file(command)), HasSubstr("os.system"));
  EXPECT_THAT(refusal(TorchBytes().file(pickled_dict({pickled_text("model"), command}))),
              HasSubstr("os.system"));
}

TEST(CourseModel, WrappersAreStrippedFromNames) {
  for (const char* prefix : {"_orig_mod.", "module.", "module._orig_mod.", "_orig_mod._orig_mod.module."}) {
    CourseBytes course;
    course.prefix(prefix);
    EXPECT_EQ(read(course.bare(), {.heads = 2}).checkpoint.tensors().size(), 21U) << prefix;
  }
  CourseBytes twice;
  twice.add("_orig_mod.ln_final.weight", {kWidth});
  EXPECT_THAT(refusal(twice.bare()), AllOf(HasSubstr("ln_final.weight"), HasSubstr("twice")));
}

TEST(CourseModel, BuffersAreIgnoredAndOtherTensorsRefused) {
  CourseBytes buffers;
  for (const char* name :
       {"layers.0.attn.rope.cos", "layers.0.attn.rope.sin_cached", "rope.freqs_cis",
        "layers.0.attn.causal_mask", "layers.1.attn.mask", "positional_encoder._freq_cis_cache", "cos_cached",
        "layers.0.attn.RoPE.table", "inv_freq"}) {
    buffers.add(name, {2, 2});
  }
  EXPECT_EQ(read(buffers.bare(), {.heads = 2}).checkpoint.tensors().size(), 21U);
  for (const char* name :
       {"layers.0.attn.q_norm.weight", "layers.0.attn.q_proj.bias", "position_embeddings.weight",
        "layers.00.ln1.weight", "layers.0.rope.weight", "single", "layers.-1.ln1.weight"}) {
    CourseBytes course;
    course.add(name, {2, 2});
    EXPECT_THAT(refusal(course.bare(), ErrorKind::unsupported), HasSubstr(name));
  }
}

TEST(CourseModel, MissingTensorsAreNamedAsTheFileWouldNameThem) {
  for (const char* name :
       {"ln_final.weight", "layers.0.attn.output_proj.weight", "layers.1.ffn.w3.weight", "lm_head.weight"}) {
    CourseBytes course;
    course.remove(name);
    EXPECT_THAT(refusal(course.bare()), AllOf(HasSubstr(name), HasSubstr("missing")));
  }
  CourseBytes far;
  far.add("layers.999999.ln1.weight", {kWidth});
  EXPECT_THAT(refusal(far.bare()), AllOf(HasSubstr("layers.2."), HasSubstr("missing")));
}

TEST(CourseModel, ATiedHeadNeedsToBeStated) {
  CourseBytes course;
  course.remove("lm_head.weight");
  const std::string tied = course.with_value(
      "model_config",
      pickled_dict({pickled_text("num_heads"), "K\x02", pickled_text("tie_embeddings"), "\x88"}));
  EXPECT_EQ(read(tied).config.tie_word_embeddings, true);
}

TEST(CourseModel, FewerHeadsOfKeysFollowFromTheTensors) {
  CourseBytes course;
  for (const char* name : {"k_proj", "v_proj"}) {
    for (const char* layer : {"layers.0.attn.", "layers.1.attn."}) {
      course.add(std::string(layer) + name + ".weight", {4, kWidth});
    }
  }
  EXPECT_EQ(read(course.bare(), {.heads = 2}).config.num_key_value_heads, 1);
  EXPECT_THAT(refusal(course.bare(), ErrorKind::file, {.heads = 1}), HasSubstr("k_proj"));
}

TEST(BookModel, EverythingFollowsFromTheTensors) {
  const TorchModel model =
      read_torch_model(std::string(QGEN_TEST_DATA) + "/golden/torch/book/qwen3-tiny-base.pth", {});
  EXPECT_EQ(model.config.model_type, "qwen3");
  EXPECT_EQ(model.config.num_attention_heads, 4);
  EXPECT_EQ(model.config.num_key_value_heads, 2);
  EXPECT_EQ(model.config.head_dim, 16);
  EXPECT_EQ(model.config.rope.theta, 1e6);
  EXPECT_EQ(model.config.rms_norm_eps, 1e-6);
  EXPECT_FALSE(model.config.rope.adjacent_pairs);
  EXPECT_NE(model.checkpoint.find("model.layers.0.self_attn.k_norm.weight"), nullptr);
}

TEST(TorchModelKinds, OtherTensorsAreNamed) {
  TorchBytes torch;
  EXPECT_THAT(
      refusal(torch.file(pickled_dict({pickled_text("transformer.wte.weight"), torch.tensor({2, 2})})),
              ErrorKind::unsupported),
      AllOf(HasSubstr("token_embeddings.weight"), HasSubstr("transformer.wte.weight")));
  EXPECT_THAT(refusal(TorchBytes().file(pickled_list({}))), HasSubstr("a list found"));
  EXPECT_THAT(refusal(TorchBytes().file(pickled_dict({})), ErrorKind::unsupported), HasSubstr("no tensors"));
}

}  // namespace
}  // namespace qgen::test
