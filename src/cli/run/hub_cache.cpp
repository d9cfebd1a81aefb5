#include "cli/run/hub_cache.h"

#include <algorithm>
#include <cstdlib>
#include <string>
#include <system_error>
#include <vector>

#include "qgen/base/error.h"
#include "qgen/base/mapped_file.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"

// Layout: CACHE/models--org--name/refs/REFERENCE holds the name of a commit,
// CACHE/models--org--name/snapshots/COMMIT the files of the repository, as links to where their contents are.

namespace qgen::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostCommitBytes = 64;

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/// As the hub has them: letters, digits, '-', '_' and '.', no dot or dash in front.
bool is_component(std::string_view text) {
  return !text.empty() && (is_letter_or_digit(text.front()) || text.front() == '_') &&
         std::ranges::all_of(
             text, [](char c) { return is_letter_or_digit(c) || c == '-' || c == '_' || c == '.'; });
}

/// References may have several components: "refs/pr/1".
bool is_reference(std::string_view text) {
  while (true) {
    const std::size_t slash = text.find('/');
    if (!is_component(text.substr(0, slash))) return false;
    if (slash == std::string_view::npos) return true;
    text.remove_prefix(slash + 1);
  }
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string command(const HubName& wanted) {
  const std::string revision = wanted.revision == "main" ? "" : " --revision " + wanted.revision;
  return "hf download " + wanted.org + "/" + wanted.name + revision;
}

[[noreturn]] void fail_not_there(const HubName& wanted, const fs::path& place) {
  throw Error(ErrorKind::file, "cannot read model " + wanted.org + "/" + wanted.name +
                                   ": No such file or directory, and it is not in the Hugging Face cache (" +
                                   escape_control(place.string()) +
                                   "); download it with: " + command(wanted));
}

/// The commit that a reference stands for; empty where there is no such reference.
std::string read_reference(const fs::path& path) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return {};
  const MappedFile file(path);
  std::string_view text = as_text(file.bytes());
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
    text.remove_suffix(1);
  if (text.size() > kMostCommitBytes || !is_component(text)) {
    throw Error(ErrorKind::file, escape_control(path.string()) + ": the name of a commit expected, " +
                                     in_quotes(text) + " found");
  }
  return std::string(text);
}

/// Names of the GGUF files of a snapshot; of one that is split, its first part. None where the snapshot has
/// safetensors.
std::vector<std::string> gguf_files(const fs::path& snapshot) {
  std::vector<std::string> names;
  std::error_code problem;
  for (fs::directory_iterator it(snapshot, problem), end; !problem && it != end; it.increment(problem)) {
    const std::string name = it->path().filename().string();
    if (name.ends_with(".safetensors")) return {};
    if (!name.ends_with(".gguf")) continue;
    const bool later_part =
        name.find("-of-") != std::string::npos && name.find("-00001-of-") == std::string::npos;
    if (!later_part) names.push_back(name);
  }
  std::ranges::sort(names);
  return names;
}

fs::path choose_file(const HubName& wanted, const fs::path& snapshot) {
  std::vector<std::string> names = gguf_files(snapshot);
  if (names.empty()) return snapshot;
  if (names.size() == 1) return snapshot / names.front();
  for (std::string& name : names) name = escape_control(name);
  throw Error(ErrorKind::file, wanted.org + "/" + wanted.name + ": several models are in " +
                                   escape_control(snapshot.string()) + ": " + join(names) +
                                   "; give the path of one of them with -m");
}

}  // namespace

bool read_hub_name(std::string_view text, HubName& result) {
  const std::size_t at = text.find('@');
  const std::string_view repository = text.substr(0, at);
  const std::size_t slash = repository.find('/');
  if (slash == std::string_view::npos) return false;
  const std::string_view org = repository.substr(0, slash), name = repository.substr(slash + 1);
  if (!is_component(org) || !is_component(name)) return false;
  result = {.org = std::string(org), .name = std::string(name)};
  if (at == std::string_view::npos) return true;
  result.revision = text.substr(at + 1);
  return is_reference(result.revision);
}

fs::path hub_cache_folder() {
  if (const std::string cache = variable("HF_HUB_CACHE"); !cache.empty()) return cache;
  if (const std::string home = variable("HF_HOME"); !home.empty()) return fs::path(home) / "hub";
  if (const std::string cache = variable("XDG_CACHE_HOME"); !cache.empty()) {
    return fs::path(cache) / "huggingface" / "hub";
  }
  if (const std::string home = variable("HOME"); !home.empty()) {
    return fs::path(home) / ".cache" / "huggingface" / "hub";
  }
  return {};
}

fs::path find_in_hub_cache(const HubName& wanted, const fs::path& cache) {
  if (cache.empty()) fail_not_there(wanted, "HF_HOME is not set");
  const fs::path repository = cache / ("models--" + wanted.org + "--" + wanted.name);
  const fs::path snapshots = repository / "snapshots";
  fs::path snapshot = snapshots / wanted.revision;
  const bool is_commit = wanted.revision.find('/') == std::string::npos && is_folder(snapshot);
  if (!is_commit) {
    const std::string commit = read_reference(repository / "refs" / wanted.revision);
    if (commit.empty() || !is_folder(snapshots / commit)) fail_not_there(wanted, cache);
    snapshot = snapshots / commit;
  }
  return choose_file(wanted, snapshot);
}

fs::path find_model(const std::string& path) {
  std::error_code problem;
  const bool missing = fs::symlink_status(path, problem).type() == fs::file_type::not_found;
  HubName wanted;
  if (!missing || !read_hub_name(path, wanted)) return path;
  return find_in_hub_cache(wanted, hub_cache_folder());
}

}  // namespace qgen::cli
