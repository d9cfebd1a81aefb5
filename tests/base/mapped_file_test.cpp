#include "qgen/base/mapped_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/types.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <utility>

#include "qgen/base/error.h"
#include "support/temp_dir.h"

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
  test::TempDir dir_;
};

TEST_F(MappedFileTest, GivesEveryByte) {
  std::string content = "first\n";
  content += std::string(10000, '\0');
  content += "last";
  const MappedFile file(dir_.file("data", content));
  EXPECT_EQ(as_text(file.bytes()), content);
}

TEST_F(MappedFileTest, AnEmptyFileGivesEmptyBytes) {
  const MappedFile file(dir_.file("empty", ""));
  EXPECT_TRUE(file.bytes().empty());
}

TEST_F(MappedFileTest, BytesOutliveTheName) {
  const std::filesystem::path path = dir_.file("data", "still here");
  const MappedFile file(path);
  std::filesystem::remove(path);
  EXPECT_EQ(as_text(file.bytes()), "still here");
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
  EXPECT_THAT(refusal(path), HasSubstr("not a regular file"));
}

TEST_F(MappedFileTest, ADeviceIsRefused) {
  EXPECT_THAT(refusal("/dev/zero"), HasSubstr("not a regular file"));
}

TEST_F(MappedFileTest, AFileWithoutReadPermissionIsRefused) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  const std::filesystem::path path = dir_.file("secret", "x");
  std::filesystem::permissions(path, std::filesystem::perms::none);
  EXPECT_THAT(refusal(path), HasSubstr("Permission denied"));
}

TEST_F(MappedFileTest, ControlBytesInTheNameAreEscapedInTheMessage) {
  const std::string message = refusal(dir_.path() / "\x1b[2Jgone");
  EXPECT_THAT(message, HasSubstr("\\x1B[2Jgone"));
  EXPECT_EQ(message.find('\x1b'), std::string::npos);
}

TEST_F(MappedFileTest, MovingHandsTheMappingOver) {
  MappedFile first(dir_.file("first", "one"));
  const std::byte* memory = first.bytes().data();
  MappedFile second(std::move(first));
  EXPECT_EQ(second.bytes().data(), memory);
  EXPECT_TRUE(first.bytes().empty());  // NOLINT(bugprone-use-after-move): a moved-from file is an empty one

  MappedFile third(dir_.file("third", "three"));
  third = std::move(second);
  EXPECT_EQ(as_text(third.bytes()), "one");
}

}  // namespace
}  // namespace qgen
