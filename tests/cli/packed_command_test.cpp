// --packed: a file of weights as they are held, which changes when a text starts and nothing else.
#include <gmock/gmock.h>

#include "cli/command.h"

namespace qgen::test {
namespace {

using ::testing::HasSubstr;

TEST(Packed, GivesTheSameTextSilently) {
  const TempFolder folder;
  const std::string file = (folder.path() / "packed").string();
  const std::vector<std::string> plain{"-p", "Once", "-n", "12", "--seed", "3", "--weights", "q8"};
  std::vector<std::string> packed = plain;
  packed.insert(packed.end(), {"--packed", file});
  const Result expected = qgen(plain);
  for (int i = 0; i < 2; ++i) {
    const Result result = qgen(packed);
    EXPECT_EQ(result.out, expected.out);
    EXPECT_EQ(result.err, "");
    EXPECT_EQ(result.status, 0);
  }
}

TEST(Packed, IsNotWrittenOverAnotherFile) {
  const TempFolder folder;
  write_file(folder.path() / "letter", "Dear Sir");
  const Result result = qgen({"-p", "Once", "-n", "2", "--packed", (folder.path() / "letter").string()});
  expect_error(result, 5);
  EXPECT_THAT(result.err, HasSubstr("expected a file of packed weights"));
  EXPECT_EQ(read_file(folder.path() / "letter"), "Dear Sir");
}

TEST(Packed, WantsANameAndADeviceThatPacks) {
  expect_error(qgen({"-p", "Once", "--packed", ""}), 2);
  const TempFolder folder;
  expect_error(qgen({"-p", "Once", "-n", "1", "--device", "reference", "--packed",
                     (folder.path() / "packed").string()}),
               2);
}

}  // namespace
}  // namespace qgen::test
