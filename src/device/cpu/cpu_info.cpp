#include "qgen/device/cpu_info.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace qgen {
namespace {

namespace fs = std::filesystem;

/// The whole of a small text file, or nothing.
std::optional<std::string> read_text(const fs::path& path) {
  std::ifstream in(path);
  if (!in) return std::nullopt;
  return std::string(std::istreambuf_iterator<char>(in), {});
}

std::optional<std::int64_t> parse_int(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data() + first, text.data() + text.size(), value);
  return error == std::errc() ? std::optional(value) : std::nullopt;
}

std::optional<std::int64_t> read_int(const fs::path& path) {
  const auto text = read_text(path);
  return text ? parse_int(*text) : std::nullopt;
}

/// What follows "`key`...:" in a file of "key : value" lines.
std::string value_of(const std::string& text, std::string_view key) {
  std::size_t line = 0;
  while (line < text.size()) {
    const std::size_t end = std::min(text.find('\n', line), text.size());
    const std::string_view row = std::string_view(text).substr(line, end - line);
    const std::size_t colon = row.find(':');
    if (row.starts_with(key) && colon != std::string_view::npos) {
      const std::size_t from = row.find_first_not_of(" \t", colon + 1);
      return from == std::string_view::npos ? std::string() : std::string(row.substr(from));
    }
    line = end + 1;
  }
  return {};
}

/// Processors that this process may run on, whatever their number.
std::vector<int> allowed_processors() {
  for (int capacity = 1024; capacity <= (1 << 20); capacity *= 2) {
    const std::size_t bytes = CPU_ALLOC_SIZE(static_cast<std::size_t>(capacity));
    std::vector<unsigned long> mask(bytes / sizeof(unsigned long));
    auto* set = reinterpret_cast<cpu_set_t*>(mask.data());
    if (::sched_getaffinity(0, bytes, set) != 0) continue;
    std::vector<int> processors;
    for (int i = 0; i < capacity; ++i) {
      if (CPU_ISSET_S(static_cast<std::size_t>(i), bytes, set)) processors.push_back(i);
    }
    return processors;
  }
  return {};
}

int count_cores(const std::vector<int>& processors) {
  std::set<std::pair<std::int64_t, std::int64_t>> cores;
  for (const int processor : processors) {
    const fs::path topology = "/sys/devices/system/cpu/cpu" + std::to_string(processor) + "/topology";
    const auto package = read_int(topology / "physical_package_id");
    const auto core = read_int(topology / "core_id");
    // Where the system says nothing, each processor counts as a core of its own.
    cores.insert(package && core ? std::pair(*package, *core)
                                 : std::pair<std::int64_t, std::int64_t>(-1, processor));
  }
  return static_cast<int>(cores.size());
}

/// Folders of this process's control group for `controller` and of all groups above it, innermost first.
std::vector<fs::path> group_folders(std::string_view controller) {
  std::vector<fs::path> folders;
  std::ifstream groups("/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool unified = controllers.empty();
    if (!unified && ("," + controllers + ",").find("," + std::string(controller) + ",") == std::string::npos)
      continue;
    const fs::path root = unified ? fs::path("/sys/fs/cgroup") : fs::path("/sys/fs/cgroup") / controllers;
    for (fs::path group = line.substr(second + 1);; group = group.parent_path()) {
      folders.push_back(root / group.relative_path());
      if (group == group.root_path() || group.empty()) break;
    }
  }
  return folders;
}

/// Processors' worth of time that one group may use (cgroup v2 cpu.max, v1 cpu.cfs_*).
std::optional<double> group_quota(const fs::path& folder) {
  std::optional<std::int64_t> quota, period;
  if (const auto text = read_text(folder / "cpu.max")) {
    const std::size_t space = text->find(' ');
    if (space == std::string::npos) return std::nullopt;
    quota = parse_int(text->substr(0, space));
    period = parse_int(std::string_view(*text).substr(space + 1));
  } else {
    quota = read_int(folder / "cpu.cfs_quota_us");
    period = read_int(folder / "cpu.cfs_period_us");
  }
  if (!quota || !period || *quota <= 0 || *period <= 0) return std::nullopt;
  return static_cast<double>(*quota) / static_cast<double>(*period);
}

template <typename T>
void keep_least(std::optional<T>& least, const std::optional<T>& value) {
  if (value && (!least || *value < *least)) least = value;
}

std::optional<double> cpu_quota() {
  std::optional<double> least;
  for (const fs::path& folder : group_folders("cpu")) keep_least(least, group_quota(folder));
  return least;
}

std::optional<std::int64_t> memory_limit() {
  std::optional<std::int64_t> least;
  for (const fs::path& folder : group_folders("memory")) {
    keep_least(least, read_int(folder / "memory.max"));
    keep_least(least, read_int(folder / "memory.limit_in_bytes"));
  }
  return least;
}

std::string model_name() {
  const std::string text = read_text("/proc/cpuinfo").value_or("");
  const std::string name = value_of(text, "model name");
  return name.empty() ? value_of(text, "Model") : name;
}

}  // namespace

CpuInfo read_cpu_info() {
  CpuInfo info;
  info.model = model_name();
  info.logical = std::max(1, static_cast<int>(::sysconf(_SC_NPROCESSORS_ONLN)));
  const std::vector<int> processors = allowed_processors();
  info.affinity = processors.empty() ? info.logical : static_cast<int>(processors.size());
  info.physical = processors.empty() ? info.logical : count_cores(processors);
  info.quota = cpu_quota();
  const std::string memory = read_text("/proc/meminfo").value_or("");
  info.memory_total = parse_int(value_of(memory, "MemTotal")).value_or(0) * 1024;
  info.memory_available = parse_int(value_of(memory, "MemAvailable")).value_or(0) * 1024;
  info.memory_limit = memory_limit();
  if (info.memory_limit && info.memory_total > 0 && *info.memory_limit > info.memory_total)
    info.memory_limit.reset();
  return info;
}

int default_threads(const CpuInfo& info) {
  const int threads = std::max(1, std::min(info.affinity, info.physical));
  if (!info.quota || *info.quota >= threads) return threads;
  return std::max(1, static_cast<int>(*info.quota));
}

}  // namespace qgen
