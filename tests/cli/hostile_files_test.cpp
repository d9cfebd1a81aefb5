// Files that were made to do harm: one line, status 5, nothing on stdout, whatever is wrong with them.
#include <gmock/gmock.h>

#include <cstring>
#include <functional>
#include <limits>
#include <ostream>

#include "cli/command.h"

namespace qgen::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;
using Weights = nlohmann::ordered_json;

std::string nested(std::size_t depth) {
  return std::string(depth, '[') + std::string(depth, ']');
}

/// A model's weights with their header changed; its data stays.
std::string with_header(const std::string& file, const std::function<void(Weights&)>& change) {
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  Weights header = Weights::parse(file.substr(8, length));
  change(header);
  const std::string text = header.dump();
  const std::uint64_t size = text.size();
  std::string out(8, '\0');
  std::memcpy(out.data(), &size, sizeof size);
  return out + text + file.substr(8 + length);
}

struct Damage {
  std::string name;
  std::function<void(const ModelFolder&)> make;
  std::string says;
};

void PrintTo(const Damage& damage, std::ostream* out) {
  *out << damage.name;
}

Damage weights(const std::string& name, const std::function<void(Weights&)>& change,
               const std::string& says) {
  return {name,
          [change](const ModelFolder& model) {
            const auto path = model.file("model.safetensors");
            write_file(path, with_header(read_file(path), change));
          },
          says};
}

Damage json_file(const std::string& name, const std::string& file, const std::function<void(json&)>& change,
                 const std::string& says) {
  return {name,
          [=](const ModelFolder& model) {
            json content = json::parse(read_file(model.file(file)));
            change(content);
            write_file(model.file(file), content.dump());
          },
          says};
}

Damage config(const std::string& key, const json& value) {
  std::string name = "config_" + key + "_" + value.dump();
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  return json_file(
      name, "config.json", [=](json& content) { content[key] = value; }, key);
}

Damage whole(const std::string& name, const std::string& file, const std::string& text,
             const std::string& says) {
  return {name, [=](const ModelFolder& model) { write_file(model.file(file), text); }, says};
}

/// An index in the place of the single file, which stays under the name a.safetensors.
Damage shards(const std::string& name, const std::string& index, const std::string& says) {
  return {name,
          [=](const ModelFolder& model) {
            std::filesystem::rename(model.file("model.safetensors"), model.file("a.safetensors"));
            write_file(model.file("model.safetensors.index.json"), index);
          },
          says};
}

Damage folder_as(const std::string& name, const std::string& file) {
  return {name,
          [=](const ModelFolder& model) {
            std::filesystem::remove(model.file(file));
            std::filesystem::create_directory(model.file(file));
          },
          file};
}

void fill_with_nan(const ModelFolder& model) {
  const auto path = model.file("model.safetensors");
  std::string file = read_file(path);
  std::uint64_t length = 0;
  std::memcpy(&length, file.data(), sizeof length);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (std::size_t at = 8 + length; at < file.size(); at += sizeof nan) {
    std::memcpy(&file[at], &nan, sizeof nan);
  }
  write_file(path, file);
}

void lengthen_header(const ModelFolder& model) {
  const auto path = model.file("model.safetensors");
  std::string file = read_file(path);
  const std::uint64_t length = file.size();
  std::memcpy(file.data(), &length, sizeof length);
  write_file(path, file);
}

const std::string kHead = "lm_head.weight";
const std::string kNorm = "model.norm.weight";

std::vector<Damage> damaged_weights() {
  return {
      {"header_beyond_the_file", lengthen_header, "truncated"},
      {"nan_everywhere", fill_with_nan, "logit"},
      weights(
          "overlapping",
          [](Weights& h) { h[kHead]["data_offsets"] = h["model.embed_tokens.weight"]["data_offsets"]; },
          "share bytes"),
      weights(
          "outside",
          [](Weights& h) {
            for (auto& offset : h[kHead]["data_offsets"]) offset = offset.get<std::int64_t>() + (1LL << 40);
          },
          "truncated"),
      weights(
          "offsets_backwards",
          [](Weights& h) {
            h[kNorm]["data_offsets"] = {10, 5};
          },
          "data_offsets"),
      weights(
          "offsets_negative",
          [](Weights& h) {
            h[kNorm]["data_offsets"] = {-1, 5};
          },
          "data_offsets"),
      weights(
          "size_of_another_shape", [](Weights& h) { h[kNorm]["shape"] = {7}; }, kNorm),
      weights(
          "size_of_another_type", [](Weights& h) { h[kNorm]["dtype"] = "BF16"; }, kNorm),
      weights(
          "unknown_type", [](Weights& h) { h[kNorm]["dtype"] = "F12"; }, "F12"),
      weights(
          "shape_that_overflows",
          [](Weights& h) {
            h[kNorm]["shape"] = {1LL << 62, 1LL << 62};
          },
          "overflows"),
      weights(
          "shape_of_many_dimensions",
          [](Weights& h) { h[kNorm]["shape"] = std::vector<std::int64_t>(1'000'000, 1); }, "at most 8"),
      weights(
          "wrong_shape",
          [](Weights& h) {
            h[kHead]["shape"] = {132, 528};
          },
          kHead),
      weights(
          "missing_tensor",
          [](Weights& h) {
            h["other"] = h[kNorm];
            h.erase(kNorm);
          },
          kNorm),
      weights(
          "long_name",
          [](Weights& h) {
            h[std::string(3'000'000, 'n')] = {{"dtype", 1}};
          },
          "dtype"),
      weights(
          "long_type", [](Weights& h) { h[kNorm]["dtype"] = std::string(3'000'000, '\x01'); }, "dtype"),
      {"doubled_tensor",
       [](const ModelFolder& model) {
         const auto path = model.file("model.safetensors");
         std::string file = read_file(path);
         const std::string first = "\"" + kHead + "\"";
         // As long as the name it replaces, by blanks after it.
         file.replace(file.find(first), first.size() + 1, "\"x\":" + std::string(first.size() - 3, ' '));
         file.replace(file.find("\"" + kNorm + "\""), kNorm.size() + 3,
                      "\"x\":" + std::string(kNorm.size() - 1, ' '));
         write_file(path, file);
       },
       "twice"},
  };
}

std::vector<Damage> damaged_json() {
  const std::string bomb = nested(3'000'000);
  std::vector<Damage> all{
      whole("tokenizer_config_array", "tokenizer_config.json", "[]", "tokenizer_config.json"),
      whole("tokenizer_config_null", "tokenizer_config.json", "null", "no JSON object"),
      whole("tokenizer_config_string", "tokenizer_config.json", "\"x\"", "no JSON object"),
      whole("generation_config_array", "generation_config.json", "[]", "generation_config.json"),
      whole("generation_config_null", "generation_config.json", "null", "generation_config.json"),
      whole("config_null", "config.json", "null", "config.json"),
      whole("tokenizer_null", "tokenizer.json", "null", "tokenizer.json"),
      whole("config_bomb", "config.json", bomb, "nested"),
      whole("tokenizer_bomb", "tokenizer.json", bomb, "nested"),
      whole("generation_bomb", "generation_config.json", bomb, "nested"),
      shards("index_bomb", R"({"weight_map":)" + bomb + "}", "nested"),
      shards("shard_above", R"({"weight_map":{"lm_head.weight":"../a.safetensors"}})", "weight_map"),
      shards("shard_absolute", R"({"weight_map":{"lm_head.weight":"/etc/passwd"}})", "weight_map"),
      shards("shard_of_long_name",
             R"({"weight_map":{"lm_head.weight":")" + std::string(3'000'000, 'n') + R"("}})", "weight_map"),
      shards("shard_missing", R"({"weight_map":{"lm_head.weight":"b.safetensors"}})", "b.safetensors"),
      shards("shard_without_the_tensor", R"({"weight_map":{"other":"a.safetensors"}})", "other"),
      json_file(
          "template_with_an_unknown_id", "tokenizer.json",
          [](json& t) {
            t["post_processor"] = json::parse(
                R"({"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"<|start|>","type_id":0}},)"
                R"({"Sequence":{"id":"A","type_id":0}}],"pair":[],"special_tokens":{"<|start|>":)"
                R"({"id":"<|start|>","ids":[70000],"tokens":["<|start|>"]}}})");
          },
          "70000"),
      json_file(
          "merge_of_unknown_pieces", "tokenizer.json", [](json& t) { t["model"]["merges"] = {"q\u4e00 z"}; },
          "merge"),
      json_file(
          "merge_of_long_pieces", "tokenizer.json",
          [](json& t) { t["model"]["merges"] = {std::string(3'000'000, 'q') + " z"}; }, "merge"),
      json_file(
          "piece_of_huge_id", "tokenizer.json", [](json& t) { t["model"]["vocab"]["a"] = 1LL << 40; },
          "vocab"),
      json_file(
          "pieces_with_one_id", "tokenizer.json", [](json& t) { t["model"]["vocab"]["a"] = 1; }, "same id"),
      whole("name_twice", "config.json",
            "{\"" + std::string(3'000'000, 'n') + "\":1,\"" + std::string(3'000'000, 'n') + "\":1}", "twice"),
      folder_as("folder_as_config", "config.json"),
      folder_as("folder_as_tokenizer", "tokenizer.json"),
      folder_as("folder_as_weights", "model.safetensors"),
  };
  for (const std::string key :
       {"hidden_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
        "intermediate_size", "vocab_size", "max_position_embeddings"}) {
    for (const json& value :
         {json(0), json(-1), json(std::numeric_limits<std::int64_t>::max()), json(1.5), json("x")}) {
      all.push_back(config(key, value));
    }
  }
  for (const std::string key : {"rms_norm_eps", "rope_theta"}) {
    for (const json& value : {json(0), json(-1), json("x")}) all.push_back(config(key, value));
  }
  all.push_back(config("model_type", std::string(3'000'000, 'm')));
  all.back().name = "config_long_model_type";
  return all;
}

class HostileFiles : public ::testing::TestWithParam<Damage> {};

TEST_P(HostileFiles, AreRefusedInOneLine) {
  const ModelFolder model{short_story()};
  GetParam().make(model);
  const Result result = qgen({"-m", model.path(), "-p", "a"});
  expect_error(result, 5);
  EXPECT_THAT(result.err, HasSubstr(GetParam().says));
  EXPECT_LT(result.err.size(), 1000U);
}

std::string name_of(const ::testing::TestParamInfo<Damage>& info) {
  return info.param.name;
}

INSTANTIATE_TEST_SUITE_P(Weights, HostileFiles, ::testing::ValuesIn(damaged_weights()), name_of);
INSTANTIATE_TEST_SUITE_P(Json, HostileFiles, ::testing::ValuesIn(damaged_json()), name_of);

}  // namespace
}  // namespace qgen::test
