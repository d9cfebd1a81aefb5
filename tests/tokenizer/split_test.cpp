#include "tokenizer/split.h"

#include <algorithm>

#include "tokenizer/support.h"

namespace qgen {
namespace {

using testing::golden;
using testing::golden_lines;
using testing::read_file;

const std::vector<std::pair<std::string, SplitRule>> kRules{
    {"gpt2", SplitRule::gpt2},
    {"qwen2", SplitRule::qwen2},
    {"llama3", SplitRule::llama3},
    {"tekken", SplitRule::tekken},
    {"o200k", SplitRule::o200k},
    {"each_digit", SplitRule::each_digit},
    {"runs_of_digits", SplitRule::runs_of_digits},
};

SplitRule rule_named(const std::string& name) {
  return std::find_if(kRules.begin(), kRules.end(), [&](const auto& rule) { return rule.first == name; })
      ->second;
}

std::vector<std::size_t> ends_of(SplitRule rule, std::string_view text) {
  std::vector<std::size_t> ends;
  for (std::size_t i = 0; i < text.size();) ends.push_back(i = piece_end(rule, text, i));
  return ends;
}

using Pieces = std::vector<std::string>;

Pieces pieces_of(const std::vector<SplitRule>& rules, std::string_view text) {
  Pieces pieces;
  for (PieceReader reader(rules, text); !reader.done();) pieces.emplace_back(reader.next());
  return pieces;
}

TEST(Split, EveryRuleCutsTextsWhereTheReferenceDoes) {
  const std::vector<Json> lines = golden_lines("cuts.jsonl");
  ASSERT_GE(lines.size(), 1500U);
  for (const Json& line : lines) {
    const std::string& text = *line.find("t")->as_string();
    const std::string& rule = *line.find("rule")->as_string();
    std::vector<std::size_t> expected;
    for (const Json& end : *line.find("e")->as_array())
      expected.push_back(static_cast<std::size_t>(*end.as_int()));
    EXPECT_EQ(ends_of(rule_named(rule), text), expected) << rule << ": " << text;
  }
}

std::string hash_of_ends(const std::vector<std::size_t>& ends) {
  std::string bytes;
  for (const std::size_t end : ends) {
    for (int shift = 0; shift < 32; shift += 8) bytes += static_cast<char>((end >> shift) & 0xFF);
  }
  return testing::fnv_hash(bytes);
}

TEST(Split, EveryCodePointIsClassedAsTheReferenceDoes) {
  const Json expected = parse_json(read_file(golden("code_points.json")), "code_points.json");
  for (std::size_t chunk = 0; chunk < testing::kCodePointChunks; ++chunk) {
    const std::string text = testing::code_points_in_company(chunk);
    for (const auto& [name, rule] : kRules) {
      EXPECT_EQ(hash_of_ends(ends_of(rule, text)), *(*expected.find(name)->as_array())[chunk].as_string())
          << name << ", chunk " << chunk;
    }
  }
}

TEST(Split, QwenKeepsSymbolsTogetherAndDigitsApart) {
  const std::vector<SplitRule> qwen{SplitRule::qwen2};
  EXPECT_EQ(pieces_of(qwen, "->"), Pieces{"->"});
  EXPECT_EQ(pieces_of(qwen, "(x):\n"), (Pieces{"(x", "):\n"}));
  EXPECT_EQ(pieces_of(qwen, "12345"), (Pieces{"1", "2", "3", "4", "5"}));
}

TEST(Split, ARunOfNewlinesIsOnePieceEvenBeforeText) {
  const std::vector<SplitRule> qwen{SplitRule::qwen2};
  EXPECT_EQ(pieces_of(qwen, "\n\nHi"), (Pieces{"\n\n", "Hi"}));
  EXPECT_EQ(pieces_of(qwen, "a\n\n\n b"), (Pieces{"a", "\n\n\n", " b"}));
}

TEST(Split, MarksAreNotLettersForQwen) {
  const std::vector<SplitRule> qwen{SplitRule::qwen2};
  EXPECT_EQ(pieces_of(qwen, "हिन्दी"), (Pieces{"ह", "िन", "्द", "ी"}));
  EXPECT_EQ(pieces_of(qwen, "नमस्ते"), (Pieces{"नमस", "्त", "े"}));
}

TEST(Split, TheLongSIsAContractionWhereCaseIsIgnored) {
  EXPECT_EQ(pieces_of({SplitRule::qwen2}, "it'ſx"), (Pieces{"it", "'ſ", "x"}));
  EXPECT_EQ(pieces_of({SplitRule::gpt2}, "it'ſx"), (Pieces{"it", "'", "ſx"}));
}

TEST(Split, TekkenEndsWordsBeforeCapitals) {
  const std::vector<SplitRule> tekken{SplitRule::tekken};
  EXPECT_EQ(pieces_of(tekken, "iPhone XMLHttp AB"), (Pieces{"i", "Phone", " XMLHttp", " AB"}));
  EXPECT_EQ(pieces_of(tekken, "http://x//\n/y"), (Pieces{"http", "://", "x", "//\n/", "y"}));
}

TEST(Split, SeveralRulesCutOneAfterAnother) {
  const std::vector<SplitRule> smollm{SplitRule::each_digit, SplitRule::gpt2};
  EXPECT_EQ(pieces_of(smollm, "a 12 b"), (Pieces{"a", " ", "1", "2", " b"}));
  EXPECT_EQ(pieces_of(smollm, ""), Pieces{});
  EXPECT_EQ(pieces_of({}, "a b"), Pieces{"a b"});
}

TEST(Split, NulIsASymbol) {
  const std::string text("a\0\0b\0c", 6);
  EXPECT_EQ(pieces_of({SplitRule::qwen2}, text),
            (Pieces{"a", std::string("\0\0", 2), "b", std::string("\0c", 2)}));
}

TEST(Split, UnknownPatternsHaveNoRule) {
  EXPECT_EQ(split_rule_of_pattern(R"(\p{N}{1,3})"), std::nullopt);
  EXPECT_EQ(split_rule_of_pattern(""), std::nullopt);
}

}  // namespace
}  // namespace qgen
