#include "weights/torch/zip.h"

#include <gmock/gmock.h>

#include "support/error_of.h"
#include "support/files.h"
#include "support/torch_bytes.h"

namespace qgen::test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

std::string refusal(const std::string& file) {
  return error_of([&] { read_zip(as_bytes(file), "x.pt"); });
}

ZipBytes two_entries() {
  ZipBytes zip;
  zip.add("a/data.pkl", "hello");
  zip.add("a/data/0", "\1\2\3");
  return zip;
}

TEST(Zip, EntriesAreViewsIntoTheFile) {
  const std::string file = two_entries().file();
  const ZipEntries entries = read_zip(as_bytes(file), "x.pt");
  ASSERT_EQ(entries.size(), 2U);
  EXPECT_EQ(as_text(entries.at("a/data.pkl")), "hello");
  EXPECT_EQ(as_text(entries.at("a/data/0")), "\1\2\3");
  EXPECT_EQ(as_text(entries.at("a/data.pkl")).data(), file.data() + file.find("hello"));
}

TEST(Zip, WideSizesAndPlacesAreRead) {
  ZipBytes zip = two_entries();
  zip.add("a/data/1", "wide", {.zip64 = true});
  const std::string file = zip.file64(zip.entries(), zip.directory());
  EXPECT_EQ(as_text(read_zip(as_bytes(file), "x.pt").at("a/data/1")), "wide");
}

TEST(Zip, ArchivesOfTorchAreRead) {
  const std::string file = read_file(std::string(QGEN_TEST_DATA) + "/golden/torch/tensors.pt");
  const ZipEntries entries = read_zip(as_bytes(file), "x.pt");
  EXPECT_EQ(as_text(entries.at("tensors/byteorder")), "little");
  EXPECT_TRUE(entries.contains("tensors/data.pkl"));
}

TEST(Zip, EveryPrefixIsRefused) {
  for (const std::string& file : {two_entries().file(), two_entries().file64(2, two_entries().directory()),
                                  read_file(std::string(QGEN_TEST_DATA) + "/golden/torch/tensors.pt")}) {
    for (std::size_t size = 0; size < file.size(); ++size) {
      EXPECT_THAT(refusal(file.substr(0, size)), HasSubstr("x.pt")) << size;
    }
  }
}

TEST(Zip, NamesThatOccurTwice) {
  ZipBytes zip = two_entries();
  zip.add("a/data/0", "again");
  EXPECT_THAT(refusal(zip.file()), AllOf(HasSubstr("a/data/0"), HasSubstr("twice")));
}

TEST(Zip, CompressedAndEncryptedEntriesAreNamed) {
  ZipBytes compressed = two_entries();
  compressed.add("a/data/1", "x", {.method = 8});
  EXPECT_THAT(refusal(compressed.file()), AllOf(HasSubstr("a/data/1"), HasSubstr("compressed")));
  ZipBytes encrypted = two_entries();
  encrypted.add("a/data/1", "x", {.flags = 1});
  EXPECT_THAT(refusal(encrypted.file()), AllOf(HasSubstr("a/data/1"), HasSubstr("encrypted")));
}

TEST(Zip, SizesAreCheckedAgainstTheFile) {
  ZipBytes zip;
  zip.add("a/data/0", "abc", {.local_size_change = 1});
  EXPECT_THAT(refusal(zip.file()), HasSubstr("does not end before the directory"));
  ZipBytes huge;
  huge.add("a/data/0", "abc", {.local_size_change = -4, .zip64 = true});  // 2^64 - 1 bytes
  EXPECT_THAT(refusal(huge.file()), HasSubstr("does not end before the directory"));
}

TEST(Zip, EntriesThatShareBytes) {
  ZipBytes zip;
  zip.add("a/data/0", "abc", {.local_size_change = 40});
  zip.add("a/data/1", "0123456789012345678901234567890123456789");
  EXPECT_THAT(refusal(zip.file()), HasSubstr("share bytes"));
}

TEST(Zip, DirectoriesAreCheckedAgainstTheFile) {
  const ZipBytes zip = two_entries();
  EXPECT_THAT(refusal(zip.file(3, zip.directory())), HasSubstr("2 entries, 3 expected"));
  EXPECT_THAT(refusal(zip.file(2, zip.directory() + 1)), HasSubstr("directory"));
  EXPECT_THAT(refusal(zip.file64(2, ~std::uint64_t{0})), HasSubstr("directory"));
  EXPECT_THAT(refusal(zip.file64(std::uint64_t{1} << 40, zip.directory())), HasSubstr("at most 1000000"));
}

TEST(Zip, NamesInMessagesAreSafeToPrint) {
  ZipBytes zip;
  zip.add("a/\x1b[2J", "x", {.method = 8});
  EXPECT_THAT(refusal(zip.file()), HasSubstr("\\x1B[2J"));
}

}  // namespace
}  // namespace qgen::test
