#include "qgen/base/output_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "qgen/base/error.h"
#include "support/files.h"

namespace qgen {
namespace {

namespace fs = std::filesystem;
using test::read_file;
using test::TempFolder;
using test::write_file;

std::size_t entries(const fs::path& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

std::string refusal(const fs::path& path) {
  try {
    OutputFile file(path);
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::output);
    return error.what();
  }
  return "accepted";
}

TEST(OutputFile, AppearsWholeWhenItIsCommitted) {
  const TempFolder folder;
  OutputFile file(folder.path() / "out");
  file.write(as_bytes("some "));
  EXPECT_FALSE(fs::exists(folder.path() / "out"));
  file.write(as_bytes("text"));
  EXPECT_EQ(file.size(), 9u);
  file.commit();
  EXPECT_EQ(read_file(folder.path() / "out"), "some text");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(OutputFile, LeavesTheOldFileAndNothingElseWhenItIsGivenUp) {
  const TempFolder folder;
  write_file(folder.path() / "out", "old");
  { OutputFile(folder.path() / "out").write(as_bytes("new")); }
  EXPECT_EQ(read_file(folder.path() / "out"), "old");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(OutputFile, LeavesNothingElseWhenTheProgramIsKilled) {
  const TempFolder folder;
  const int fd = ::open(folder.path().c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0600);
  if (fd < 0) GTEST_SKIP() << "this file system has no files without names";
  ::close(fd);
  write_file(folder.path() / "out", "old");
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    OutputFile file(folder.path() / "out");
    file.write(as_bytes("new"));
    ::_exit(0);  // no destructor runs, as with SIGKILL
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_EQ(status, 0);
  EXPECT_EQ(read_file(folder.path() / "out"), "old");
  EXPECT_EQ(entries(folder.path()), 1u);
}

TEST(OutputFile, ReplacesTheTargetOfALink) {
  const TempFolder folder;
  write_file(folder.path() / "target", "old");
  fs::create_symlink("target", folder.path() / "link");
  OutputFile file(folder.path() / "link");
  file.write(as_bytes("new"));
  file.commit();
  EXPECT_TRUE(fs::is_symlink(folder.path() / "link"));
  EXPECT_EQ(read_file(folder.path() / "target"), "new");
}

TEST(OutputFile, TwoOfOneNameDoNotMeet) {
  const TempFolder folder;
  OutputFile first(folder.path() / "out"), second(folder.path() / "out");
  first.write(as_bytes("first"));
  second.write(as_bytes("2"));
  first.commit();
  EXPECT_EQ(read_file(folder.path() / "out"), "first");
  second.commit();
  EXPECT_EQ(read_file(folder.path() / "out"), "2");
}

TEST(OutputFile, HasThePermissionsOfAnyNewFile) {
  const TempFolder folder;
  write_file(folder.path() / "other", "");
  OutputFile file(folder.path() / "out");
  file.commit();
  EXPECT_EQ(fs::status(folder.path() / "out").permissions(),
            fs::status(folder.path() / "other").permissions());
}

TEST(OutputFile, RefusesWhatIsNoPlaceForAFile) {
  const TempFolder folder;
  EXPECT_THAT(refusal(folder.path()), testing::HasSubstr("it is a folder"));
  EXPECT_THAT(refusal(folder.path() / "absent" / "out"), testing::HasSubstr("No such file or directory"));
  EXPECT_THAT(refusal(folder.path() / "absent/"), testing::HasSubstr("names a folder"));
  ASSERT_EQ(::mkfifo((folder.path() / "pipe").c_str(), 0600), 0);
  EXPECT_THAT(refusal(folder.path() / "pipe"), testing::HasSubstr("no regular file"));
}

}  // namespace
}  // namespace qgen
