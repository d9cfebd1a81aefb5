#include "weights/torch/pickle.h"

#include <gmock/gmock.h>

#include "support/error_of.h"
#include "support/files.h"
#include "support/torch_bytes.h"
#include "weights/torch/torch_dict.h"

namespace qgen::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

/// `data` must outlive it.
Pickle read(const std::string& data) {
  return read_pickle(as_bytes(data), "x.pkl");
}

PickleValue root(const std::string& data) {
  const Pickle pickle = read(data);
  return pickle[pickle.root];
}

std::string refusal(const std::string& data) {
  return error_of([&] { read(data); });
}

/// Bytes with NULs in them.
template <std::size_t kSize>
std::string raw(const char (&bytes)[kSize]) {
  return {bytes, kSize - 1};
}

TEST(Pickle, NumbersOfAllSizes) {
  EXPECT_EQ(root(pickle("K\xFF")).integer, 255);
  EXPECT_EQ(root(pickle("M\xFF\xFF")).integer, 65535);
  EXPECT_EQ(root(pickle("J\xFE\xFF\xFF\xFF")).integer, -2);
  EXPECT_EQ(root(pickle(raw("\x8a\x00"))).integer, 0);
  EXPECT_EQ(root(pickle("\x8a\x01\xFF")).integer, -1);
  EXPECT_EQ(root(pickle(raw("\x8a\x02\xFF\x00"))).integer, 255);
  EXPECT_EQ(root(pickle("\x8a\x05\1\1\1\1\1")).integer, 0x101010101);
  EXPECT_EQ(root(pickle("\x8a\x09\1\1\1\1\1\1\1\1\1")).kind, PickleKind::big_integer);
  EXPECT_EQ(root(pickle(raw("\x8b\x01\x00\x00\x00\x05"))).integer, 5);
  EXPECT_EQ(root(pickle(raw("G\xBF\xF8\x00\x00\x00\x00\x00\x00"))).number, -1.5);
  EXPECT_EQ(root(pickle("\x88")).integer, 1);
  EXPECT_EQ(root(pickle("N")).kind, PickleKind::none);
}

TEST(Pickle, TextsAndBytes) {
  EXPECT_EQ(root(pickle("\x8c\x02hi")).text, "hi");
  EXPECT_EQ(root(pickle(pickled_text("hi"))).kind, PickleKind::text);
  EXPECT_EQ(root(pickle("C\x02\xFFz")).text, "\xFFz");
  EXPECT_EQ(root(pickle(pickled_bytes("b"))).kind, PickleKind::bytes);
  EXPECT_EQ(root(pickle("\x8d" + little(3, 8) + "abc")).text, "abc");
  EXPECT_EQ(root(pickle("\x8e" + little(3, 8) + "abc")).kind, PickleKind::bytes);
}

TEST(Pickle, CollectionsKeepTheirOrder) {
  const Pickle list =
      read(pickle("](K\x01K\x02"
                  "eK\x03"
                  "a"));
  ASSERT_EQ(list[list.root].items.size(), 3U);
  EXPECT_EQ(list[list[list.root].items[2]].integer, 3);
  const Pickle tuple = read(pickle("K\x01K\x02K\x03\x87"));
  EXPECT_EQ(tuple[tuple[tuple.root].items[0]].integer, 1);
  const Pickle dict = read(pickle("}(K\x01K\x02uK\x03K\x04s"));
  EXPECT_EQ(dict_members(dict, dict[dict.root])->size(), 2U);
  EXPECT_EQ(root(pickle("\x8f(K\x01\x90")).kind, PickleKind::set);
  EXPECT_EQ(root(pickle("(K\x01\x91")).items.size(), 1U);
}

TEST(Pickle, MemoAndStackOperations) {
  const Pickle twice =
      read(pickle(pickled_text("a") + "\x94" + "h\x00\x86"[0] + std::string(1, '\0') + "\x86"));
  const std::vector<PickleId>& items = twice[twice.root].items;
  EXPECT_EQ(items[0], items[1]);
  EXPECT_EQ(root(pickle("K\x01q\x05"
                        "0h\x05"))
                .integer,
            1);
  EXPECT_EQ(root(pickle("K\x01(K\x02K\x03"
                        "1"))
                .integer,
            1);
  EXPECT_EQ(root(pickle("K\x01(0")).integer, 1);
  EXPECT_EQ(root(pickle("K\x07"
                        "2\x86"))
                .items.size(),
            2U);
}

TEST(Pickle, GlobalsAreNamesAndCallsAreDescriptions) {
  const std::string call =
      pickle(pickled_call(pickled_global("os", "system"), {pickled_text("touch /tmp/x")}));
  const Pickle command = read(call);
  const PickleValue& value = command[command.root];
  EXPECT_TRUE(command.is_call(value, "os", "system"));
  EXPECT_EQ(command.describe(value), "an object made by os.system");
  const std::string stacked = pickle(pickled_text("builtins") + pickled_text("eval") + "\x93");
  const Pickle by_stack = read(stacked);
  EXPECT_TRUE(Pickle::is_global(by_stack[by_stack.root], "builtins", "eval"));
  // NEWOBJ with a state, as any object of a class is written.
  const std::string built = pickle(pickled_global("m", "C") + ")\x81}b");
  const Pickle object = read(built);
  EXPECT_TRUE(object.is_call(object[object.root], "m", "C"));
}

TEST(Pickle, ObjectsThatWouldBeCollectionsKeepWhatIsPutIntoThem) {
  const std::string data =
      pickle(pickled_call(pickled_global("collections", "OrderedDict"), {}) + pickled_text("k") + "K\x01s}b");
  const Pickle ordered = read(data);
  const auto members = dict_members(ordered, ordered[ordered.root]);
  ASSERT_TRUE(members);
  EXPECT_EQ(find_member(*members, "k")->integer, 1);
}

TEST(Pickle, CyclesDoNoHarm) {
  const Pickle itself =
      read(pickle(raw("]q\x00h\x00"
                      "a")));
  EXPECT_EQ(itself[itself.root].items.front(), itself.root);
  EXPECT_EQ(itself.describe(itself[itself.root]), "a list");
  const Pickle dict = read(pickle(raw("}q\x00K\x01h\x00s")));
  EXPECT_EQ(dict_members(dict, dict[dict.root])->size(), 1U);
}

TEST(Pickle, RepeatedReferencesTakeNoMemory) {
  // Each list holds the one before it a hundred times: a hundred to the power of a hundred elements.
  std::string data = raw("]q\x00");
  for (int level = 1; level < 100; ++level) {
    data += "(";
    for (int i = 0; i < 100; ++i) data += std::string("h") + static_cast<char>(level - 1);
    data += std::string("tq") + static_cast<char>(level);
  }
  EXPECT_LT(read(pickle(data)).values.size(), 200U);
}

TEST(Pickle, DepthOfNestingDoesNotMatterToTheStackOfTheProgram) {
  std::string data = "]";
  for (int i = 0; i < 1'000'000; ++i) data += "\x85";
  EXPECT_EQ(root(pickle(data)).kind, PickleKind::tuple);
}

TEST(Pickle, LimitsAreNamed) {
  EXPECT_THAT(refusal(pickle(std::string(kMostPickleMarks + 1, '('))), HasSubstr("1000"));
  EXPECT_THAT(refusal(pickle(std::string(kMostPickleValues + 1, ']'))), HasSubstr("2000000"));
  EXPECT_THAT(refusal(pickle("]" + std::string(kMostPickleReferences + 1, '2'))), HasSubstr("16000000"));
}

TEST(Pickle, LengthsAreCheckedBeforeAnythingIsTaken) {
  for (const std::string& value :
       {"X" + little(0xFFFFFFFF, 4), "\x8e" + little(~std::uint64_t{0}, 8), "\x8b" + little(0xFFFFFFFF, 4),
        "\x95" + little(std::uint64_t{1} << 40, 8)}) {
    EXPECT_THAT(refusal(pickle(value)), HasSubstr("truncated"));
  }
}

TEST(Pickle, EveryPrefixIsRefused) {
  for (const char* name : {"merges.pkl", "merges_protocol2.pkl"}) {
    const std::string data = read_file(std::string(QGEN_TEST_DATA) + "/golden/torch/course/" + name);
    EXPECT_EQ(root(data).kind, PickleKind::list);
    for (std::size_t size = 0; size < data.size(); ++size) {
      EXPECT_THAT(refusal(data.substr(0, size)), HasSubstr("x.pkl")) << size;
    }
  }
}

TEST(Pickle, ProgramsThatDoNotAddUpNameTheOpcode) {
  EXPECT_THAT(refusal(pickle("")), AllOf(HasSubstr("0x2e"), HasSubstr("stack")));
  EXPECT_THAT(refusal(pickle("K\x01\x86")), HasSubstr("0x86"));
  EXPECT_THAT(refusal(pickle("t")), HasSubstr("mark"));
  EXPECT_THAT(refusal(pickle("K\x01K\x02"
                             "a")),
              HasSubstr("no collection"));
  EXPECT_THAT(refusal(pickle("}(K\x01u")), HasSubstr("key without a value"));
  EXPECT_THAT(refusal(pickle("h\x07")), HasSubstr("number 7"));
  EXPECT_THAT(refusal(pickle("NNR")), HasSubstr("tuple of arguments"));
  EXPECT_THAT(refusal(pickle("NN\x93")), HasSubstr("no name"));
  EXPECT_THAT(refusal(pickle("K\x01(")), HasSubstr("stack")) << "what lies below a mark is not to be had";
}

TEST(Pickle, OtherOpcodesAndProtocolsAreNamed) {
  EXPECT_THAT(refusal(pickle("\x82\x01")), HasSubstr("0x82"));  // EXT1: the registry of extensions
  EXPECT_THAT(refusal(pickle("I1\n")), HasSubstr("0x49"));
  EXPECT_THAT(refusal("\x80\x06N."), HasSubstr("protocol 6"));
  EXPECT_THAT(refusal("(dp0\n."), HasSubstr("not a pickle of protocol 2 to 5"));
}

}  // namespace
}  // namespace qgen::test
