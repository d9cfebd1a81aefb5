// Models that Hugging Face's tools have downloaded, by their names.
#include <gmock/gmock.h>

#include "cli/command.h"
#include "cli/run/hub_cache.h"

namespace qgen::test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;

constexpr const char* kCommit = "0123456789abcdef0123456789abcdef01234567";

/// A cache as those tools make it: the files of a snapshot are links.
class HubCache : public ::testing::Test {
 protected:
  HubCache() {
    short_story().write(blobs());
    fs::create_directories(snapshot());
    fs::create_directories(repository() / "refs" / "refs" / "pr");
    for (const fs::directory_entry& entry : fs::directory_iterator(blobs())) {
      const fs::path name = entry.path().filename();
      fs::create_symlink(fs::path("../../blobs") / name, snapshot() / name);
    }
    write_file(repository() / "refs" / "main", kCommit);
    write_file(repository() / "refs" / "refs" / "pr" / "1", std::string(kCommit) + "\n");
  }

  [[nodiscard]] fs::path hub() const { return folder_.path() / "hub"; }
  [[nodiscard]] fs::path repository() const { return hub() / "models--some-org--Tiny.Model"; }
  [[nodiscard]] fs::path blobs() const { return repository() / "blobs"; }
  [[nodiscard]] fs::path snapshot() const { return repository() / "snapshots" / kCommit; }

  [[nodiscard]] Result run_model(const std::string& name) const {
    return run_with(name, {{"HF_HUB_CACHE", hub().string()}});
  }
  [[nodiscard]] static Result run_with(const std::string& name,
                                       std::vector<std::pair<std::string, std::string>> environment) {
    Launch start = launch({"-m", name, "-p", "a", "--greedy"});
    start.environment = {{"HF_HUB_CACHE", ""}, {"HF_HOME", ""}, {"XDG_CACHE_HOME", ""}, {"HOME", ""}};
    start.environment.insert(start.environment.end(), environment.begin(), environment.end());
    return run(kQgen, start);
  }

  TempFolder folder_;
};

TEST_F(HubCache, NamesFindTheirSnapshot) {
  for (const std::string name :
       {"some-org/Tiny.Model", "some-org/Tiny.Model@main", "some-org/Tiny.Model@refs/pr/1",
        "some-org/Tiny.Model@0123456789abcdef0123456789abcdef01234567"}) {
    const Result result = run_model(name);
    EXPECT_EQ(result.status, 0) << result.err;
    EXPECT_EQ(result.out, "bcdef") << name;
  }
}

TEST_F(HubCache, EveryVariableOfTheToolsLeadsToIt) {
  const std::string base = folder_.path().string();
  fs::create_directories(folder_.path() / "cache" / "huggingface");
  fs::create_directories(folder_.path() / ".cache" / "huggingface");
  fs::create_directory_symlink(hub(), folder_.path() / "cache" / "huggingface" / "hub");
  fs::create_directory_symlink(hub(), folder_.path() / ".cache" / "huggingface" / "hub");
  for (const std::pair<std::string, std::string>& variable :
       std::vector<std::pair<std::string, std::string>>{{"HF_HUB_CACHE", hub().string()},
                                                        {"HF_HOME", base},
                                                        {"XDG_CACHE_HOME", base + "/cache"},
                                                        {"HOME", base}}) {
    EXPECT_EQ(run_with("some-org/Tiny.Model", {variable}).out, "bcdef") << variable.first;
  }
  // The first that is set counts, even if the model is not there.
  expect_error(run_with("some-org/Tiny.Model", {{"HF_HUB_CACHE", base + "/none"}, {"HF_HOME", base}}), 5);
}

TEST_F(HubCache, TheTokenizerIsFoundToo) {
  Launch start = launch({"tokenize", "-m", "some-org/Tiny.Model", "--ids", "-p", "ab"});
  start.environment = {{"HF_HUB_CACHE", hub().string()}};
  EXPECT_EQ(run(kQgen, start).out, "97 98\n");
}

TEST_F(HubCache, PathsGoFirst) {
  ModelFolder model{short_story()};
  EXPECT_EQ(run_model(model.path()).out, "bcdef");
}

TEST_F(HubCache, WhatIsNotThereComesWithTheCommandThatGetsIt) {
  const Result missing = run_model("some-org/Other");
  expect_error(missing, 5);
  EXPECT_THAT(missing.err, AllOf(HasSubstr("hf download some-org/Other"), HasSubstr(hub().string())));
  const Result revision = run_model("some-org/Tiny.Model@v2");
  expect_error(revision, 5);
  EXPECT_THAT(revision.err, HasSubstr("hf download some-org/Tiny.Model --revision v2"));
  const Result nowhere = run_with("some-org/Tiny.Model", {});
  expect_error(nowhere, 5);
  EXPECT_THAT(nowhere.err, HasSubstr("hf download some-org/Tiny.Model"));
  fs::remove_all(snapshot());
  expect_error(run_model("some-org/Tiny.Model"), 5);
}

TEST_F(HubCache, NothingLeadsOutOfTheCache) {
  fs::create_directories(folder_.path() / "secret");
  short_story().write(folder_.path() / "secret");
  write_file(repository() / "refs" / "main", "../../../secret");
  const Result reference = run_model("some-org/Tiny.Model");
  expect_error(reference, 5);
  EXPECT_THAT(reference.err, HasSubstr("the name of a commit expected"));
  for (const std::string name :
       {"some-org/Tiny.Model@../../../secret", "some-org/Tiny.Model@", "../x", "some-org/..",
        "some-org/Tiny.Model@refs//pr", "some-org/.hidden", "a/b/c"}) {
    expect_error(run_model(name), 5);
    cli::HubName parsed;
    EXPECT_FALSE(cli::read_hub_name(name, parsed)) << name;
  }
}

TEST_F(HubCache, FilesOfDownloadsThatBrokeOffAreNamed) {
  fs::remove(blobs() / "model.safetensors");
  const Result result = run_model("some-org/Tiny.Model");
  expect_error(result, 5);
  EXPECT_THAT(result.err, HasSubstr("model.safetensors"));
}

TEST_F(HubCache, OfSeveralGgufFilesOneHasToBeChosen) {
  fs::remove(snapshot() / "model.safetensors");
  write_file(snapshot() / "a-q4.gguf", "x");
  cli::HubName name;
  ASSERT_TRUE(cli::read_hub_name("some-org/Tiny.Model", name));
  EXPECT_EQ(cli::find_in_hub_cache(name, hub()), snapshot() / "a-q4.gguf");
  write_file(snapshot() / "b-00001-of-00002.gguf", "x");
  write_file(snapshot() / "b-00002-of-00002.gguf", "x");
  const Result result = run_model("some-org/Tiny.Model");
  expect_error(result, 5);
  EXPECT_THAT(result.err, HasSubstr("a-q4.gguf, b-00001-of-00002.gguf; give the path of one"));
  fs::remove(snapshot() / "a-q4.gguf");
  EXPECT_EQ(cli::find_in_hub_cache(name, hub()), snapshot() / "b-00001-of-00002.gguf");
}

}  // namespace
}  // namespace qgen::test
