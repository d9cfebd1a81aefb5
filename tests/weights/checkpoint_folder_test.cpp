#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "qgen/weights/checkpoint.h"
#include "support/error_of.h"
#include "support/files.h"
#include "support/safetensors_bytes.h"

namespace qgen {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::SafetensorsWriter;
using test::TempFolder;
using test::write_file;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr const char* kIndexName = "model.safetensors.index.json";

std::string file_with(std::initializer_list<const char*> names) {
  SafetensorsWriter writer;
  for (const char* name : names) writer.add(name, {2, 3});
  return writer.file();
}

std::string refusal(const fs::path& folder) {
  return error_of([&] { Checkpoint::from_folder(folder); });
}

/// Two shards, s1 with "a" and s2 with "b", and an index with the given weight_map.
class Shards : public ::testing::Test {
 protected:
  Shards() {
    write_file(folder_.path() / "s1.safetensors", file_with({"a"}));
    write_file(folder_.path() / "s2.safetensors", file_with({"b"}));
  }
  void index(const std::string& weight_map) {
    write_file(folder_.path() / kIndexName,
               R"({"metadata":{"total_size":48},"weight_map":)" + weight_map + "}");
  }
  [[nodiscard]] std::string message() const { return refusal(folder_.path()); }

  TempFolder folder_;
};

TEST(CheckpointFolder, ReadsTheSingleFileAndKeepsItMapped) {
  TempFolder folder;
  write_file(folder.path() / "model.safetensors", file_with({"a", "b"}));
  Checkpoint checkpoint = Checkpoint::from_folder(folder.path());
  const Checkpoint moved = std::move(checkpoint);
  EXPECT_EQ(moved.require("b", {2, 3}).row(1)[0], std::byte{0});
  EXPECT_THAT(moved.find("a")->file, HasSubstr("model.safetensors"));
}

TEST(CheckpointFolder, PrefersTheSingleFileToAnIndex) {
  TempFolder folder;
  write_file(folder.path() / "model.safetensors", file_with({"a"}));
  write_file(folder.path() / kIndexName, "not even JSON");
  EXPECT_EQ(Checkpoint::from_folder(folder.path()).tensors().size(), 1u);
}

TEST(CheckpointFolder, NamesPathAndReasonWhereThereIsNothingToRead) {
  TempFolder folder;
  EXPECT_THAT(refusal(folder.path() / "absent"),
              AllOf(HasSubstr("absent"), HasSubstr("No such file or directory")));
  write_file(folder.path() / "file", "x");
  EXPECT_THAT(refusal(folder.path() / "file"),
              AllOf(HasSubstr("/file"), HasSubstr("a model folder was expected")));
  EXPECT_THAT(refusal(folder.path()), AllOf(HasSubstr("model.safetensors"), HasSubstr(kIndexName)));
  fs::create_directory(folder.path() / "model.safetensors");
  EXPECT_THAT(refusal(folder.path()), AllOf(HasSubstr("model.safetensors"), HasSubstr("is a directory")));
}

TEST(CheckpointFolder, NamesAFileThatMayNotBeRead) {
  if (::geteuid() == 0) GTEST_SKIP() << "root may read everything";
  TempFolder folder;
  write_file(folder.path() / "model.safetensors", file_with({"a"}));
  fs::permissions(folder.path() / "model.safetensors", fs::perms::none);
  EXPECT_THAT(refusal(folder.path()), AllOf(HasSubstr("model.safetensors"), HasSubstr("Permission denied")));
}

TEST(CheckpointFolder, NamesALinkThatLeadsNowhere) {
  TempFolder folder;
  fs::create_symlink("model.safetensors", folder.path() / "model.safetensors");
  EXPECT_THAT(refusal(folder.path()), AllOf(HasSubstr("model.safetensors"), HasSubstr("symbolic links")));
}

TEST(CheckpointFolder, NamesWeightsInFormsThatAreNotRead) {
  TempFolder folder;
  write_file(folder.path() / "pytorch_model.bin", "x");
  write_file(folder.path() / "a\x1b[2J.gguf", "x");
  write_file(folder.path() / "notes.txt", "x");
  EXPECT_THAT(refusal(folder.path()), AllOf(HasSubstr("not supported: a\\x1B[2J.gguf, pytorch_model.bin"),
                                            Not(HasSubstr("notes.txt"))));
}

TEST(CheckpointFolder, RefusesAHeaderOverTheCapByBothNumbers) {
  TempFolder folder;
  constexpr std::uint64_t kLength = 126'000'000;
  write_file(folder.path() / "model.safetensors", test::length_prefix(kLength));
  fs::resize_file(folder.path() / "model.safetensors", 8 + kLength);
  EXPECT_THAT(refusal(folder.path()), AllOf(HasSubstr("126000000"), HasSubstr("100000000")));
}

TEST_F(Shards, AreReadTogether) {
  index(R"({"a":"s1.safetensors","b":"s2.safetensors"})");
  const Checkpoint checkpoint = Checkpoint::from_folder(folder_.path());
  EXPECT_THAT(checkpoint.find("a")->file, HasSubstr("s1.safetensors"));
  EXPECT_THAT(checkpoint.find("b")->file, HasSubstr("s2.safetensors"));
}

TEST_F(Shards, MayHoldTensorsThatTheIndexLeavesOut) {
  write_file(folder_.path() / "s2.safetensors", file_with({"b", "c"}));
  index(R"({"a":"s1.safetensors","b":"s2.safetensors"})");
  EXPECT_NE(Checkpoint::from_folder(folder_.path()).find("c"), nullptr);
}

TEST_F(Shards, AreNeverLookedForOutsideTheFolder) {
  // Each of these exists: they must be refused for their names alone.
  fs::create_directory(folder_.path() / "sub");
  write_file(folder_.path() / "sub/s2.safetensors", file_with({"b"}));
  const std::string absolute = (folder_.path() / "s2.safetensors").string();
  for (const std::string& name :
       {std::string("../") + folder_.path().filename().string() + "/s2.safetensors", absolute,
        std::string("./s2.safetensors"), std::string("sub/s2.safetensors"),
        std::string("sub\\\\s2.safetensors"), std::string(".."), std::string("."), std::string(),
        std::string("s2.safetensors\\u0000")}) {
    index(R"({"a":"s1.safetensors","escapee":")" + name + "\"}");
    EXPECT_THAT(message(), AllOf(HasSubstr(kIndexName), HasSubstr("escapee"), HasSubstr("in this folder")))
        << name;
  }
}

TEST_F(Shards, AreRefusedBeforeAnyIsOpened) {
  index(R"({"a":"absent.safetensors","b":"../other/x.safetensors"})");
  EXPECT_THAT(message(), AllOf(HasSubstr("../other/x.safetensors"), Not(HasSubstr("absent.safetensors"))));
}

TEST_F(Shards, NamesTheFileOfAMissingShard) {
  index(R"({"a":"s1.safetensors","b":"model-00002-of-00002.safetensors"})");
  EXPECT_THAT(message(), AllOf(HasSubstr("model-00002-of-00002.safetensors"), HasSubstr("No such file")));
}

TEST_F(Shards, NamesTheFileOfATruncatedShard) {
  const std::string whole = file_with({"b"});
  write_file(folder_.path() / "s2.safetensors", whole.substr(0, whole.size() - 5));
  index(R"({"a":"s1.safetensors","b":"s2.safetensors"})");
  EXPECT_THAT(message(), AllOf(HasSubstr("s2.safetensors"), HasSubstr("5 bytes missing")));
}

TEST_F(Shards, RefuseATensorInTwoOfThem) {
  write_file(folder_.path() / "s2.safetensors", file_with({"a", "b"}));
  index(R"({"a":"s1.safetensors","b":"s2.safetensors"})");
  EXPECT_THAT(message(),
              AllOf(HasSubstr("tensor a"), HasSubstr("s1.safetensors"), HasSubstr("s2.safetensors")));
}

TEST_F(Shards, RefuseAnIndexThatDoesNotHold) {
  index(R"({"a":"s2.safetensors","b":"s2.safetensors"})");
  EXPECT_THAT(message(), AllOf(HasSubstr("tensor a"), HasSubstr("s2.safetensors"), HasSubstr("in no shard")));
  index(R"({"a":"s2.safetensors","b":"s1.safetensors"})");
  EXPECT_THAT(message(), AllOf(HasSubstr("tensor a should be in"), HasSubstr("s1.safetensors")));
  index(R"({"a":"s1.safetensors","b":"s2.safetensors","\u001b[2J":"s2.safetensors"})");
  EXPECT_THAT(message(), AllOf(HasSubstr("\\x1B[2J"), HasSubstr("no shard"), Not(HasSubstr("\x1b"))));
}

TEST_F(Shards, RefuseAnIndexWithoutAMap) {
  index("{}");
  EXPECT_THAT(message(), HasSubstr("names no shard"));
  index("[]");
  EXPECT_THAT(message(), HasSubstr("weight_map"));
  index(R"({"a":1})");
  EXPECT_THAT(message(), AllOf(HasSubstr("tensor a"), HasSubstr("no string")));
  write_file(folder_.path() / kIndexName, R"({"metadata":{}})");
  EXPECT_THAT(message(), HasSubstr("weight_map: it is missing"));
  write_file(folder_.path() / kIndexName, std::string(100000, '['));
  EXPECT_THAT(message(), HasSubstr("nested deeper"));
}

}  // namespace
}  // namespace qgen
