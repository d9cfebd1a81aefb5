// The GGUF container. Literal bytes follow the published layout; tests/golden has files of the gguf package.

#include "qgen/weights/gguf.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <string>

#include "support/error_of.h"
#include "support/files.h"
#include "support/gguf_bytes.h"

namespace qgen {
namespace {

using test::error_of;
using test::gguf_string;
using test::GgufBytes;
using test::GgufWriter;
using test::little_endian;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string refusal(const std::string& file, ErrorKind kind = ErrorKind::file) {
  return error_of([&] { (void)GgufBytes(file).open(); }, kind);
}

GgufWriter small_model() {
  GgufWriter file;
  file.text("general.architecture", "qwen3").u32("a.number", 7).texts("a.texts", {"x", "", "yz"});
  file.i32s("a.numbers", {1, -2}).zeros("first", {3, 2}).zeros("second", {8});
  return file;
}

TEST(Gguf, GivesKeysAndTensorsAsTheFileHasThem) {
  for (const std::uint32_t version : {2u, 3u}) {
    const GgufBytes file(small_model().file(version));
    const Gguf gguf = file.open();
    EXPECT_EQ(gguf.metadata().text("general.architecture"), "qwen3");
    EXPECT_EQ(gguf.metadata().integer("a.number", 0, 9), 7);
    EXPECT_THAT(*gguf.metadata().texts("a.texts"), ElementsAre("x", "", "yz"));
    EXPECT_THAT(*gguf.metadata().integers("a.numbers"), ElementsAre(1, -2));
    EXPECT_EQ(gguf.metadata().text("absent"), std::nullopt);
    ASSERT_EQ(gguf.tensors().size(), 2u);
    EXPECT_EQ(gguf.tensors()[0].name, "first");
    EXPECT_THAT(gguf.tensors()[0].tensor.shape, ElementsAre(2, 3));
    EXPECT_EQ(gguf.tensors()[0].tensor.data.size(), 24u);
    EXPECT_EQ(gguf.tensors()[1].tensor.data.data(), gguf.tensors()[0].tensor.data.data() + 32);
  }
}

TEST(Gguf, ReadsEveryTypeOfValue) {
  GgufWriter writer;
  writer.raw("u8", GgufType::u8, "\xFF").raw("i8", GgufType::i8, "\xFF");
  writer.raw("u16", GgufType::u16, "\xFE\xFF").raw("i16", GgufType::i16, "\xFE\xFF");
  writer.raw("u32", GgufType::u32, "\xFE\xFF\xFF\xFF").raw("i32", GgufType::i32, "\xFE\xFF\xFF\xFF");
  writer.raw("u64", GgufType::u64, std::string(8, '\xFF')).raw("i64", GgufType::i64, std::string(8, '\xFF'));
  writer.f32("f32", 1e-6f).raw("f64", GgufType::f64, little_endian(std::bit_cast<std::uint64_t>(0.1)));
  writer.boolean("yes", true).boolean("no", false).text("text", "a\0b");
  writer.array("bools", GgufType::boolean, 2, "\1\1");
  const std::string inner = little_endian(std::uint32_t{0}) + little_endian(std::uint64_t{2}) + "ab";
  writer.array("nested", GgufType::array, 2, inner + inner).u32("last", 5);
  const GgufBytes file(writer.file());
  const Gguf gguf = file.open();
  const GgufMetadata& metadata = gguf.metadata();
  constexpr auto kLow = std::numeric_limits<std::int64_t>::min(),
                 kHigh = std::numeric_limits<std::int64_t>::max();
  const auto integer = [&](const char* key) { return metadata.integer(key, kLow, kHigh).value(); };
  EXPECT_EQ(integer("u8"), 255);
  EXPECT_EQ(integer("i8"), -1);
  EXPECT_EQ(integer("u16"), 65534);
  EXPECT_EQ(integer("i16"), -2);
  EXPECT_EQ(integer("u32"), 4294967294);
  EXPECT_EQ(integer("i32"), -2);
  EXPECT_EQ(integer("i64"), -1);
  EXPECT_EQ(metadata.number("f32", 0, 1), 1e-6);  // the decimal, not the float next to it
  EXPECT_EQ(metadata.number("f64", 0, 1), 0.1);
  EXPECT_EQ(metadata.boolean("yes"), true);
  EXPECT_EQ(metadata.boolean("no"), false);
  EXPECT_EQ(metadata.find("nested")->count, 2u);
  EXPECT_EQ(integer("last"), 5);
}

TEST(Gguf, GettersRefuseOtherTypesByKey) {
  GgufWriter writer;
  writer.text("text", "x").f32("float", 2).u32("number", 3).texts("texts", {"a"}).boolean("bool", true);
  const GgufBytes file(writer.file());
  const Gguf gguf = file.open();
  const GgufMetadata& metadata = gguf.metadata();
  const auto error = [](auto get) { return error_of([&] { (void)get(); }); };
  EXPECT_THAT(error([&] { return metadata.integer("text", 0, 9); }),
              HasSubstr("m.gguf: text: an integer from 0 to 9 expected, \"x\" found"));
  EXPECT_THAT(error([&] { return metadata.integer("float", 0, 9); }), HasSubstr("float: an integer"));
  EXPECT_THAT(error([&] { return metadata.integer("bool", 0, 9); }), HasSubstr("bool: an integer"));
  EXPECT_THAT(error([&] { return metadata.integer("number", 4, 9); }),
              HasSubstr("number: an integer from 4 to 9 expected, 3 found"));
  EXPECT_THAT(error([&] { return metadata.number("text", 0, 1); }), HasSubstr("text: a number"));
  EXPECT_THAT(error([&] { return metadata.number("float", 0, 1); }),
              HasSubstr("float: a number from 0 to 1"));
  EXPECT_THAT(error([&] { return metadata.text("number"); }), HasSubstr("number: a string"));
  EXPECT_THAT(error([&] { return metadata.boolean("number"); }), HasSubstr("number: a bool"));
  EXPECT_THAT(error([&] { return metadata.integers("texts"); }),
              HasSubstr("texts: an array of integers expected, an array of 1 string found"));
  EXPECT_THAT(error([&] { return metadata.texts("text"); }), HasSubstr("text: an array of strings"));
}

TEST(Gguf, RefusesOtherFormatsByWhatTheyAre) {
  const auto unsupported = [](const std::string& file) { return refusal(file, ErrorKind::unsupported); };
  const std::string rest(16, '\0');
  EXPECT_THAT(unsupported(std::string("GGUF\0\0\0\3", 8) + rest), HasSubstr("byte order is big-endian"));
  EXPECT_THAT(unsupported(GgufWriter().file(1)), HasSubstr("version 1 is not supported"));
  EXPECT_THAT(unsupported(GgufWriter().file(99)), HasSubstr("version 99 is not supported"));
  EXPECT_THAT(unsupported("GGML" + rest), HasSubstr("magic is \"GGML\""));
  EXPECT_THAT(refusal("PK\3\4" + rest), HasSubstr("the magic \"GGUF\" expected"));
}

TEST(Gguf, RefusesEveryPrefixAndNamesWhatIsMissing) {
  const std::string whole = small_model().file();
  ASSERT_NO_THROW((void)GgufBytes(whole).open());
  for (std::size_t size = 0; size < whole.size(); ++size) {
    EXPECT_THAT(refusal(whole.substr(0, size)), AllOf(HasSubstr("m.gguf: truncated"))) << size;
  }
  EXPECT_THAT(refusal(whole.substr(0, 4)), HasSubstr("4 bytes missing"));
  EXPECT_THAT(refusal(whole.substr(0, whole.size() - 2)),
              AllOf(HasSubstr("tensor second"), HasSubstr("2 bytes missing")));
}

TEST(Gguf, RefusesLengthsBeyondTheFileWithoutReservingThem) {
  const std::uint64_t huge = std::uint64_t{1} << 40;
  const std::string text = GgufWriter().raw("key", GgufType::string, little_endian(huge)).file();
  EXPECT_THAT(refusal(text), AllOf(HasSubstr("the value of key"), HasSubstr("1099511627776 bytes")));
  for (const GgufType element : {GgufType::u8, GgufType::f64, GgufType::string, GgufType::array}) {
    const std::string array = GgufWriter().array("key", element, huge, "").file();
    EXPECT_THAT(refusal(array), HasSubstr("1099511627776 elements of key stated"));
  }
  const std::string begin = "GGUF" + little_endian(std::uint32_t{3});
  const std::string none = little_endian(std::uint64_t{0});
  EXPECT_THAT(refusal(begin + little_endian(huge) + none), HasSubstr("tensors stated, at most 1048576"));
  EXPECT_THAT(refusal(begin + none + little_endian(huge)), HasSubstr("metadata keys stated, at most 65536"));
  EXPECT_THAT(refusal(begin + little_endian(std::uint64_t{1000}) + none), HasSubstr("1000 tensors stated"));
  struct rusage usage {};
  ::getrusage(RUSAGE_SELF, &usage);
  EXPECT_LT(usage.ru_maxrss, 512 * 1024);
}

TEST(Gguf, RefusesArraysThatAreNestedTooDeep) {
  const auto nested = [](int depth) {
    std::string value =
        little_endian(static_cast<std::uint32_t>(GgufType::u8)) + little_endian(std::uint64_t{0});
    for (int i = 1; i < depth; ++i) {
      value = little_endian(static_cast<std::uint32_t>(GgufType::array)) + little_endian(std::uint64_t{1}) +
              value;
    }
    return GgufWriter().raw("deep", GgufType::array, value).file();
  };
  EXPECT_NO_THROW((void)GgufBytes(nested(4)).open());
  EXPECT_THAT(refusal(nested(5)), HasSubstr("deep: arrays are nested more than 4 deep"));
  EXPECT_THAT(refusal(nested(2000)), HasSubstr("nested"));
}

TEST(Gguf, RefusesWhatOccursTwice) {
  EXPECT_THAT(refusal(GgufWriter().u32("a", 1).u32("a", 2).file()), HasSubstr("a: the key occurs twice"));
  EXPECT_THAT(refusal(GgufWriter().zeros("t", {8}).zeros("t", {8}).file()),
              HasSubstr("tensor t occurs twice"));
}

TEST(Gguf, RefusesUnknownTypesByName) {
  EXPECT_THAT(refusal(GgufWriter().raw("k", static_cast<GgufType>(13), "").file(), ErrorKind::unsupported),
              HasSubstr("k: value type 13"));
  const auto of_type = [](std::uint32_t type) {
    return refusal(GgufWriter().tensor_entry("blk.0.x", {256}, type, 0).data(std::string(256, 'x')).file(),
                   ErrorKind::unsupported);
  };
  EXPECT_THAT(of_type(16), HasSubstr("tensor blk.0.x: type IQ2_XXS (16) is not supported"));
  EXPECT_THAT(of_type(77), HasSubstr("type number 77"));
}

TEST(Gguf, ChecksTheAlignment) {
  for (const std::uint32_t wrong : {0u, 4u, 24u, 1u << 17}) {
    EXPECT_THAT(refusal(GgufWriter().u32("general.alignment", wrong).file()),
                HasSubstr("general.alignment: a power of two from 8 to 65536 expected"));
  }
  EXPECT_THAT(refusal(GgufWriter().text("general.alignment", "32").file()), HasSubstr("general.alignment"));
  EXPECT_THAT(refusal(GgufWriter().tensor_entry("t", {1}, 0, 8).data(std::string(32, 'x')).file()),
              HasSubstr("tensor t: offset 8 is no multiple of the alignment 32"));
  GgufWriter eight;
  eight.u32("general.alignment", 8).tensor_entry("t", {1}, 0, 8).data(std::string(32, 'x'));
  EXPECT_NO_THROW((void)GgufBytes(eight.file()).open());
}

TEST(Gguf, ChecksProductsOfDimensions) {
  const auto shape = [](const std::vector<std::uint64_t>& dims, std::uint32_t type = 0) {
    return GgufWriter().tensor_entry("t", dims, type, 0).data(std::string(64, 'x')).file();
  };
  EXPECT_THAT(refusal(shape({1024, (std::uint64_t{1} << 42) + 1, 1 << 12})),
              AllOf(HasSubstr("tensor t"), HasSubstr("overflows 64 bits")));
  EXPECT_THAT(refusal(shape({1024, (std::uint64_t{1} << 42) + 1})), HasSubstr("tensor t ends"));
  // No element at all, but the rows' length alone is too much for what is computed from it later.
  EXPECT_THAT(refusal(shape({std::uint64_t{1} << 61, 0})), HasSubstr("overflows 64 bits"));
  EXPECT_THAT(refusal(shape({1024, std::uint64_t{1} << 42, 0, std::uint64_t{1} << 42})),
              HasSubstr("overflows 64 bits"));
  EXPECT_THAT(refusal(shape({~std::uint64_t{0}})),
              HasSubstr("tensor t: a dimension of 18446744073709551615"));
  EXPECT_THAT(refusal(shape({1, 1, 1, 1, 1})), HasSubstr("tensor t: at most 4 dimensions expected, 5 found"));
  EXPECT_THAT(refusal(shape({33}, 8)), HasSubstr("shape [33] of Q8_0: rows must be whole blocks of 32"));
  EXPECT_THAT(
      refusal(GgufWriter().tensor_entry("t", {1}, 0, ~std::uint64_t{31}).data(std::string(64, 'x')).file()),
      HasSubstr("tensor t ends"));
}

TEST(Gguf, TakesTensorsWithoutElementsAndWithoutDimensions) {
  GgufWriter writer;
  writer.tensor_entry("empty", {1, 0}, 0, 0).tensor_entry("one", {}, 0, 0).data(std::string(4, 'x'));
  const GgufBytes file(writer.file());
  const Gguf gguf = file.open();
  EXPECT_EQ(gguf.tensors()[0].tensor.data.size(), 0u);
  EXPECT_EQ(gguf.tensors()[1].tensor.data.size(), 4u);
  // As it was once reported: nothing but the table.
  const std::string reported = GgufWriter().tensor_entry("t", {1, 0}, 0, 0).file();
  ASSERT_EQ(reported.size(), 65u);
  EXPECT_EQ(GgufBytes(reported).open().tensors().size(), 1u);
}

TEST(Gguf, RefusesTensorsThatShareBytes) {
  GgufWriter writer;
  writer.tensor_entry("a", {16}, 0, 0).tensor_entry("b", {8}, 0, 32).data(std::string(64, 'x'));
  EXPECT_THAT(refusal(writer.file()), HasSubstr("tensors a and b share bytes"));
}

TEST(Gguf, EscapesWhatItQuotes) {
  EXPECT_THAT(refusal(GgufWriter().tensor_entry("\x1b]8;;", {1}, 99, 0).file(), ErrorKind::unsupported),
              HasSubstr("tensor \\x1B]8;;:"));
}

class SplitFiles : public ::testing::Test {
 protected:
  void write(const std::string& name, const GgufWriter& part) const {
    test::write_file(folder_.path() / name, part.file());
  }
  static GgufWriter part(std::uint32_t number, std::uint32_t count) {
    GgufWriter file;
    file.u32("split.no", number).u32("split.count", count).u32("split.tensors.count", 2);
    file.zeros("t" + std::to_string(number), {8});
    return file;
  }
  [[nodiscard]] Gguf open(const std::string& name) const { return Gguf::open(folder_.path() / name); }

  test::TempFolder folder_;
};

TEST_F(SplitFiles, AreReadTogether) {
  write("m-00001-of-00002.gguf", part(0, 2));
  write("m-00002-of-00002.gguf", part(1, 2));
  const Gguf gguf = open("m-00001-of-00002.gguf");
  ASSERT_EQ(gguf.tensors().size(), 2u);
  EXPECT_EQ(gguf.tensors()[1].name, "t1");
  EXPECT_THAT(gguf.tensors()[1].tensor.file, HasSubstr("m-00002-of-00002.gguf"));
}

TEST_F(SplitFiles, AMissingPartIsNamed) {
  write("m-00001-of-00002.gguf", part(0, 2));
  EXPECT_THAT(error_of([&] { (void)open("m-00001-of-00002.gguf"); }),
              AllOf(HasSubstr("m-00002-of-00002.gguf"), HasSubstr("No such file")));
  EXPECT_NO_THROW((void)Gguf::open_metadata(folder_.path() / "m-00001-of-00002.gguf"));
}

TEST_F(SplitFiles, TheFirstPartIsAskedFor) {
  write("m-00002-of-00002.gguf", part(1, 2));
  EXPECT_THAT(error_of([&] { (void)open("m-00002-of-00002.gguf"); }),
              AllOf(HasSubstr("part 2 of 2"), HasSubstr("m-00001-of-00002.gguf")));
  write("renamed.gguf", part(0, 2));
  EXPECT_THAT(error_of([&] { (void)open("renamed.gguf"); }), HasSubstr("-00001-of-00002.gguf is expected"));
}

TEST_F(SplitFiles, PartsThatDoNotBelongTogetherAreRefused) {
  write("m-00001-of-00002.gguf", part(0, 2));
  write("m-00002-of-00002.gguf", part(0, 2));
  EXPECT_THAT(error_of([&] { (void)open("m-00001-of-00002.gguf"); }),
              HasSubstr("split.no: 1 expected, 0 found"));
  write("m-00002-of-00002.gguf", part(1, 3));
  EXPECT_THAT(error_of([&] { (void)open("m-00001-of-00002.gguf"); }), HasSubstr("split.count: 2 expected"));
  write("m-00002-of-00002.gguf", part(1, 2).zeros("more", {8}));
  EXPECT_THAT(error_of([&] { (void)open("m-00001-of-00002.gguf"); }),
              HasSubstr("split.tensors.count: 2 tensors expected, 3 found"));
}

TEST(GgufNames, AreTranslatedBothWays) {
  for (const auto& [gguf, here] : std::vector<std::pair<std::string, std::string>>{
           {"token_embd.weight", "model.embed_tokens.weight"},
           {"output_norm.weight", "model.norm.weight"},
           {"output.weight", "lm_head.weight"},
           {"blk.0.attn_norm.weight", "model.layers.0.input_layernorm.weight"},
           {"blk.12.attn_q.bias", "model.layers.12.self_attn.q_proj.bias"},
           {"blk.3.attn_output.weight", "model.layers.3.self_attn.o_proj.weight"},
           {"blk.3.attn_k_norm.weight", "model.layers.3.self_attn.k_norm.weight"},
           {"blk.3.ffn_norm.weight", "model.layers.3.post_attention_layernorm.weight"},
           {"blk.3.ffn_down.weight", "model.layers.3.mlp.down_proj.weight"},
           {"blk.3.ffn_gate_inp.weight", "model.layers.3.mlp.gate.weight"}}) {
    EXPECT_EQ(name_from_gguf(gguf), here);
    EXPECT_EQ(gguf_name_of(here), gguf);
  }
  EXPECT_EQ(gguf_name_of("model.layers.3.mlp.experts.7.up_proj.weight"), "blk.3.ffn_up_exps.weight");
  for (const char* unknown : {"", "weight", "blk.0.weight", "blk..attn_q.weight", "blk.x.attn_q.weight",
                              "blk.1", "blk.0.attn_qkv.weight", "output.scale"}) {
    EXPECT_EQ(name_from_gguf(unknown), std::nullopt) << unknown;
  }
}

TEST(GgufCheckpoint, StacksOfExpertsBecomeOneTensorEach) {
  const GgufBytes file(GgufWriter().zeros("blk.1.ffn_up_exps.weight", {8, 4, 3}).file());
  const Checkpoint checkpoint = Checkpoint::from_gguf(file.open());
  ASSERT_EQ(checkpoint.tensors().size(), 3u);
  const StoredTensor& first = *checkpoint.find("model.layers.1.mlp.experts.0.up_proj.weight");
  const StoredTensor& last = *checkpoint.find("model.layers.1.mlp.experts.2.up_proj.weight");
  EXPECT_THAT(last.shape, ElementsAre(4, 8));
  EXPECT_EQ(last.data.data(), first.data.data() + std::ptrdiff_t{2 * 4 * 8 * 4});
  EXPECT_EQ(last.data.size(), 4u * 8 * 4);
}

TEST(GgufCheckpoint, RefusesStacksThatAreNone) {
  const auto stack = [](const std::vector<std::uint64_t>& dims) {
    const GgufBytes file(
        GgufWriter().tensor_entry("blk.0.ffn_up_exps.weight", dims, 0, 0).data(std::string(64, 'x')).file());
    return error_of([&] { (void)Checkpoint::from_gguf(file.open()); });
  };
  EXPECT_THAT(stack({4, 4}),
              HasSubstr("tensor blk.0.ffn_up_exps.weight: a stack of 1 to 4096 matrices expected"));
  EXPECT_THAT(stack({0, 4, std::uint64_t{1} << 40}), HasSubstr("a stack of 1 to 4096 matrices expected"));
}

TEST(GgufCheckpoint, NamesTensorsAsTheFileDoes) {
  const GgufBytes strange(GgufWriter().zeros("blk.0.ssm_in.weight", {8}).file());
  EXPECT_THAT(error_of([&] { (void)Checkpoint::from_gguf(strange.open()); }, ErrorKind::unsupported),
              HasSubstr("tensor blk.0.ssm_in.weight: none of the models"));
  const GgufBytes file(GgufWriter().zeros("output.weight", {8, 2}).file());
  const Checkpoint checkpoint = Checkpoint::from_gguf(file.open());
  EXPECT_THAT(error_of([&] {
                (void)checkpoint.require("lm_head.weight", {3, 8});
              }),
              HasSubstr("tensor output.weight: shape [3, 8] expected, [2, 8] found"));
  EXPECT_THAT(error_of([&] {
                (void)checkpoint.require("model.layers.0.self_attn.q_proj.weight", {3, 8});
              }),
              HasSubstr("tensor blk.0.attn_q.weight: shape [3, 8] expected, but it is missing"));
}

}  // namespace
}  // namespace qgen
