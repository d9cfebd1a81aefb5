#include "qgen/base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <utility>

#include "qgen/base/error.h"
#include "support/files.h"

namespace qgen {
namespace {

using ::testing::HasSubstr;

/// The message with which opening `path` fails; it must be an Error{file}.
std::string refusal(const std::filesystem::path& path) {
  try {
    const MappedFile file(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::file);
    return error.what();
  }
  ADD_FAILURE() << path << " was opened";
  return {};
}

class MappedFileTest : public ::testing::Test {
 protected:
  /// A new file of that content.
  std::filesystem::path file(const std::string& name, std::string_view content) const {
    test::write_file(dir_.path() / name, content);
    return dir_.path() / name;
  }

  test::TempFolder dir_;
};

TEST_F(MappedFileTest, GivesEveryByte) {
  std::string content = "first\n";
  content += std::string(10000, '\0');
  content += "last";
  const MappedFile mapped(file("data", content));
  EXPECT_EQ(as_text(mapped.bytes()), content);
}

/// Bytes of memory that this process holds.
std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0, resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

TEST_F(MappedFileTest, ReleasedBytesTakeNoMemoryUntilTheyAreReadAgain) {
  constexpr std::size_t kSize = std::size_t{24} << 20;
  std::string content(kSize, 'x');
  content.back() = 'y';
  const MappedFile mapped(file("data", content));
  content = std::string();
  EXPECT_EQ(std::ranges::count(as_text(mapped.bytes()), 'y'), 1);
  const std::size_t before = resident_bytes();
  mapped.release(mapped.bytes().subspan(100, kSize - 200));
  EXPECT_LE(resident_bytes() + kSize / 4 * 3, before);
  EXPECT_EQ(std::ranges::count(as_text(mapped.bytes()), 'x'), kSize - 1);
}

TEST_F(MappedFileTest, ReleasingLessThanAPageChangesNothing) {
  const MappedFile mapped(file("data", "abc"));
  mapped.release(mapped.bytes());
  mapped.release({});
  EXPECT_EQ(as_text(mapped.bytes()), "abc");
}

TEST_F(MappedFileTest, AnEmptyFileGivesEmptyBytes) {
  const MappedFile mapped(file("empty", ""));
  EXPECT_TRUE(mapped.bytes().empty());
}

TEST_F(MappedFileTest, BytesOutliveTheName) {
  const std::filesystem::path path = file("data", "still here");
  const MappedFile mapped(path);
  std::filesystem::remove(path);
  EXPECT_EQ(as_text(mapped.bytes()), "still here");
}

TEST_F(MappedFileTest, AMissingFileIsNamedWithTheReason) {
  const std::string message = refusal(dir_.path() / "no such file");
  EXPECT_THAT(message, HasSubstr((dir_.path() / "no such file").string()));
  EXPECT_THAT(message, HasSubstr("No such file or directory"));
}

TEST_F(MappedFileTest, ADirectoryIsRefusedAsOne) {
  EXPECT_THAT(refusal(dir_.path()), HasSubstr("is a directory"));
}

TEST_F(MappedFileTest, AFifoWithoutAWriterIsRefusedAndDoesNotBlock) {
  const std::filesystem::path path = dir_.path() / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  ::alarm(20);  // ends the program if the open blocks
  EXPECT_THAT(refusal(path), HasSubstr("not a regular file"));
  ::alarm(0);
}

TEST_F(MappedFileTest, ADeviceIsRefused) {
  EXPECT_THAT(refusal("/dev/zero"), HasSubstr("not a regular file"));
}

TEST_F(MappedFileTest, AFileWithoutReadPermissionIsRefused) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const std::filesystem::path path = file("secret", "x");
  std::filesystem::permissions(path, std::filesystem::perms::none);
  EXPECT_THAT(refusal(path), HasSubstr("Permission denied"));
}

TEST_F(MappedFileTest, ControlBytesInTheNameAreEscapedInTheMessage) {
  const std::string message = refusal(dir_.path() / "\x1b[2Jgone");
  EXPECT_THAT(message, HasSubstr("\\x1B[2Jgone"));
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
}

TEST_F(MappedFileTest, MovingHandsTheMappingOver) {
  MappedFile first(file("first", "one"));
  const std::byte* memory = first.bytes().data();
  MappedFile second(std::move(first));
  EXPECT_EQ(second.bytes().data(), memory);
  EXPECT_TRUE(first.bytes().empty());  // NOLINT(bugprone-use-after-move): a moved-from file is an empty one

  MappedFile third(file("third", "three"));
  third = std::move(second);
  EXPECT_EQ(as_text(third.bytes()), "one");
}

}  // namespace
}  // namespace qgen
