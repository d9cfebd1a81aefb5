#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <random>

#include "qgen/engine/engine.h"
#include "support/files.h"

namespace qgen {
namespace {

Engine load(const std::string& kernels = "", const std::string& device = "auto") {
  EngineOptions options;
  options.device = device;
  options.device_options.kernels = kernels;
  options.device_options.threads = 2;
  return Engine::from_folder(test::tales_folder(), options, Log());
}

std::vector<TokenId> random_tokens(std::size_t count, std::uint32_t seed = 1) {
  std::mt19937 random(seed);
  std::vector<TokenId> tokens(count);
  for (TokenId& token : tokens) token = static_cast<TokenId>(random() % 4093);
  return tokens;
}

std::vector<std::uint32_t> bits(const Logits& logits) {
  std::vector<std::uint32_t> result(logits.values.size());
  std::ranges::transform(logits.values, result.begin(),
                         [](float value) { return std::bit_cast<std::uint32_t>(value); });
  return result;
}

std::vector<std::uint32_t> fresh(const Engine& engine, std::span<const TokenId> tokens) {
  Session session = engine.new_session();
  return bits(session.feed(tokens, Want::last));
}

TEST(Session, RewindLeavesNoTrace) {
  const Engine engine = load();
  const std::vector<TokenId> tokens = random_tokens(400);
  const std::vector<TokenId> tail = random_tokens(12, 2);
  for (const std::size_t keep : {std::size_t{1}, std::size_t{256}, std::size_t{300}}) {
    Session session = engine.new_session();
    session.feed(std::span(tokens).first(keep), Want::none);
    session.feed(std::span(tokens).subspan(keep), Want::none);
    session.rewind(static_cast<std::int64_t>(keep));
    EXPECT_EQ(session.position(), static_cast<std::int64_t>(keep));
    Session other = engine.new_session();
    other.feed(std::span(tokens).first(keep), Want::none);
    EXPECT_EQ(bits(session.feed(tail, Want::last)), bits(other.feed(tail, Want::last)));
  }
}

TEST(Session, SlideEqualsAFreshRunOverWhatIsLeft) {
  const Engine engine = load();
  const std::vector<TokenId> tokens = random_tokens(40);
  for (const std::int64_t keep : {0, 4}) {
    Session session = engine.new_session();
    session.feed(tokens, Want::none);
    const std::vector<std::uint32_t> slid = bits(session.slide(keep, 5, Want::last));
    std::vector<TokenId> left = tokens;
    left.erase(left.begin() + keep, left.begin() + keep + 5);
    EXPECT_TRUE(std::ranges::equal(session.tokens(), left));
    EXPECT_EQ(slid, fresh(engine, left)) << "keeping " << keep;
  }
}

TEST(Session, RecomputingGivesWhatTheCacheGives) {
  const Engine engine = load();
  Session cached = engine.new_session();
  Session naive = engine.new_session(true);
  for (const TokenId& token : random_tokens(16)) {
    EXPECT_EQ(bits(cached.feed({&token, 1}, Want::last)), bits(naive.feed({&token, 1}, Want::last)));
  }
  EXPECT_EQ(naive.position(), 16);
}

TEST(Session, AllRowsAreThoseOfSingleSteps) {
  const Engine engine = load();
  const std::vector<TokenId> tokens = random_tokens(14);
  Session together = engine.new_session();
  const std::vector<std::uint32_t> rows = bits(together.feed(tokens, Want::all));
  const auto vocab = static_cast<std::size_t>(engine.vocab());
  ASSERT_EQ(rows.size(), tokens.size() * vocab);
  Session single = engine.new_session();
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::vector<std::uint32_t> row(rows.begin() + static_cast<std::ptrdiff_t>(i * vocab),
                                         rows.begin() + static_cast<std::ptrdiff_t>((i + 1) * vocab));
    EXPECT_EQ(bits(single.feed({&tokens[i], 1}, Want::last)), row);
  }
}

TEST(Session, AllRowsSpanTheCutsOfLongPrompts) {
  const Engine engine = load();
  const std::vector<TokenId> tokens = random_tokens(700);
  Session session = engine.new_session();
  session.feed(std::span(tokens).first(100), Want::none);
  const Logits logits = session.feed(std::span(tokens).subspan(100), Want::all);
  const auto vocab = static_cast<std::size_t>(engine.vocab());
  ASSERT_EQ(logits.values.size(), 600 * vocab);
  const auto row = logits.values.last(vocab);
  const std::vector<float> last(row.begin(), row.end());
  Session other = engine.new_session();
  other.feed(std::span(tokens).first(100), Want::none);
  const Logits expected = other.feed(std::span(tokens).subspan(100), Want::last);
  // Many rows of logits may be computed from inputs rounded to bf16 (8 bits), a single one is not.
  const float largest = *std::ranges::max_element(expected.values);
  for (std::size_t i = 0; i < vocab; ++i)
    EXPECT_NEAR(last[i], expected.values[i], std::abs(largest) * 0x1p-6f);
}

TEST(Session, AShortRestGoesWithTheTokensBeforeIt) {
  const Engine engine = load();
  const auto steps = [&](std::size_t count, std::size_t before) {
    const std::vector<TokenId> tokens = random_tokens(count);
    Session session = engine.new_session();
    if (before > 0) session.feed(std::span(tokens).first(before), Want::none);
    std::vector<std::int64_t> done;
    session.feed(std::span(tokens).subspan(before), Want::last, [&](std::int64_t tokens_done) {
      done.push_back(tokens_done);
      return true;
    });
    return done;
  };
  EXPECT_EQ(steps(512, 0), (std::vector<std::int64_t>{512}));
  EXPECT_EQ(steps(640, 0), (std::vector<std::int64_t>{640}));
  EXPECT_EQ(steps(641, 0), (std::vector<std::int64_t>{512, 641}));
  EXPECT_EQ(steps(1024 - 383, 500), (std::vector<std::int64_t>{12, 141})) << "cuts count from the start";
  EXPECT_EQ(steps(1000, 400), (std::vector<std::int64_t>{112, 600}));
}

TEST(Session, ProgressCountsUpAndCanStopTheFeeding) {
  const Engine engine = load();
  const std::vector<TokenId> tokens = random_tokens(1000);
  Session session = engine.new_session();
  std::vector<std::int64_t> seen;
  session.feed(tokens, Want::last, [&](std::int64_t done) {
    seen.push_back(done);
    return true;
  });
  EXPECT_EQ(seen, (std::vector<std::int64_t>{512, 1000}));
  Session stopped = engine.new_session();
  const Logits none = stopped.feed(tokens, Want::last, [](std::int64_t) { return false; });
  EXPECT_TRUE(none.values.empty());
}

TEST(Session, ForksGoTheirOwnWays) {
  const Engine engine = load();
  const std::vector<TokenId> past = random_tokens(30), left = random_tokens(2, 5),
                             right = random_tokens(2, 6);
  Session trunk = engine.new_session();
  trunk.feed(past, Want::none);
  Session branch = trunk.fork();
  const auto expect = [&](Session& session, const std::vector<TokenId>& end) {
    Session other = engine.new_session();
    other.feed(past, Want::none);
    EXPECT_EQ(bits(session.feed(end, Want::last)), bits(other.feed(end, Want::last)));
  };
  expect(trunk, left);
  expect(branch, right);
  EXPECT_EQ(branch.position(), 32);
}

TEST(Session, ManyTextsInOneProcessDoNotInfluenceEachOther) {
  const Engine engine = load();
  const std::vector<TokenId> first = random_tokens(50), second = random_tokens(60, 9);
  const std::vector<std::uint32_t> expected = fresh(engine, second);
  (void)fresh(engine, first);
  EXPECT_EQ(fresh(engine, second), expected);
}

TEST(Session, FilledToTheLastPositionEqualsAFreshRunAtEveryBorder) {
  const Engine engine = load();
  const auto context = static_cast<std::size_t>(engine.context());
  ASSERT_EQ(context, 1024u);
  const std::vector<TokenId> tokens = random_tokens(context);
  Session session = engine.new_session();
  session.feed(std::span(tokens).first(context - 1), Want::none);
  const std::vector<std::uint32_t> last = bits(session.feed(std::span(tokens).last(1), Want::last));
  EXPECT_EQ(session.position(), engine.context());
  Session other = engine.new_session();
  other.feed(std::span(tokens).first(context - 1), Want::none);
  EXPECT_EQ(last, bits(other.feed(std::span(tokens).last(1), Want::last)));
}

}  // namespace
}  // namespace qgen
