#include "cli/doctor.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "cli/builtin/builtin.h"
#include "cli/io/format.h"
#include "cli/io/json_text.h"
#include "cli/io/messages.h"
#include "cli/options/model_options.h"
#include "cli/options/option_set.h"
#include "cli/version.h"
#include "qgen/base/text.h"
#include "qgen/base/utf8.h"
#include "qgen/device/cpu_info.h"
#include "qgen/device/device.h"
#include "qgen/kernels/kernel_table.h"
#include "qgen/models/architecture.h"

namespace qgen::cli {
namespace {

using OrderedJson = nlohmann::ordered_json;

constexpr std::string_view kIntroduction =
    R"(qgen doctor shows what was found on this machine, what is chosen and why, and measures how fast memory and
arithmetic are (under two seconds).)";

struct DeviceState {
  std::string name;
  std::optional<std::string> problem;  // nothing: it can serve
};

/// Everything the report tells.
struct Findings {
  CpuInfo cpu;
  CpuLimits limits;
  std::vector<std::string> features, built, available;
  std::string kernels;
  bool forced_kernels = false;
  int threads = 1;
  bool forced_threads = false;
  std::vector<DeviceState> devices;
  BuildInfo build;
};

template <typename Names>
std::vector<std::string> strings(const Names& names) {
  return {names.begin(), names.end()};
}

/// Each device is asked about a real model, the built-in one.
std::vector<DeviceState> ask_devices() {
  const EmbeddedModel& model = builtin_model();
  const ModelConfig config = parse_model_config(as_text(model.config), model.name);
  const Checkpoint checkpoint = Checkpoint::from_bytes(model.weights, model.name);
  const Plan plan = find_architecture(config).plan(config, checkpoint);
  std::vector<DeviceState> states;
  for (const Device* device : devices())
    states.push_back({std::string(device->name()), device->supports(plan)});
  return states;
}

Findings find(const ModelOptions& options) {
  Findings found;
  found.cpu = read_cpu_info();
  found.features = strings(cpu_features());
  found.built = strings(built_kernels());
  for (const KernelTable* table : available_kernels()) found.available.emplace_back(table->name);
  found.forced_kernels = !options.kernels.empty();
  found.kernels = found.forced_kernels ? kernels_named(options.kernels).name : best_kernels().name;
  found.forced_threads = options.threads > 0;
  found.threads = found.forced_threads ? static_cast<int>(options.threads) : default_threads(found.cpu);
  found.devices = ask_devices();
  found.build = build_info();
  found.limits = measure_cpu(found.threads, found.kernels);
  return found;
}

std::string words(const std::vector<std::string>& list) {
  return list.empty() ? "none" : join(list, " ");
}

std::string optional_gops(const std::optional<double>& ops) {
  return ops ? fixed(*ops / 1e9, 0) : "none";
}

std::string text_report(const Findings& found) {
  std::string text;
  const auto row = [&text](std::string_view name, const std::string& value) {
    text += std::string(name) + std::string(name.size() < 13 ? 13 - name.size() : 1, ' ') + value + "\n";
  };
  const CpuInfo& cpu = found.cpu;
  row("version", version_text());
  row("processor", cpu.model.empty() ? "unknown" : escape_control(cpu.model));
  row("features", words(found.features));
  row("kernels", found.kernels + (found.forced_kernels ? " (asked for" : " (best for these features") +
                     "; this processor can run: " + words(found.available) +
                     "; built: " + words(found.built) + ")");
  row("cores", std::to_string(cpu.logical) + " logical, " + std::to_string(cpu.affinity) + " in affinity, " +
                   std::to_string(cpu.physical) + " physical, container quota " +
                   (cpu.quota ? fixed(*cpu.quota, 2) : std::string("none")));
  row("threads",
      std::to_string(found.threads) +
          (found.forced_threads ? " (asked for)" : " (least of affinity, quota and physical cores)"));
  row("memory", human_bytes(cpu.memory_total) + ", available " + human_bytes(cpu.memory_available) +
                    ", container limit " +
                    (cpu.memory_limit ? human_bytes(*cpu.memory_limit) : std::string("none")));
  row("bandwidth", fixed(found.limits.read_bytes_per_second / 1e9, 1) + " GB/s read, measured");
  row("arithmetic", "Gop/s measured: f32 " + fixed(found.limits.f32_ops_per_second / 1e9, 0) + ", bf16 " +
                        optional_gops(found.limits.bf16_ops_per_second) + ", int8 " +
                        optional_gops(found.limits.int8_ops_per_second));
  for (const DeviceState& device : found.devices) {
    row("device",
        device.name + ": " + (device.problem ? escape_control(*device.problem) : std::string("can serve")));
  }
  row("build", found.build.compiler + ", " + found.build.standard_library + ", " + found.build.type + ", " +
                   found.build.target);
  return text;
}

OrderedJson gops(const std::optional<double>& ops) {
  return ops ? OrderedJson(*ops / 1e9) : OrderedJson();
}

OrderedJson json_report(const Findings& found) {
  const CpuInfo& cpu = found.cpu;
  OrderedJson report;
  report["version"] = version_number();
  report["cpu"] = {{"model", replace_invalid_utf8(cpu.model)},
                   {"features", found.features},
                   {"kernels", found.kernels},
                   {"kernels_available", found.available},
                   {"kernels_built", found.built},
                   {"threads", found.threads},
                   {"logical", cpu.logical},
                   {"affinity", cpu.affinity},
                   {"physical", cpu.physical},
                   {"quota", or_null<OrderedJson>(cpu.quota)}};
  report["memory"] = {{"total", cpu.memory_total},
                      {"available", cpu.memory_available},
                      {"limit", or_null<OrderedJson>(cpu.memory_limit)}};
  report["read_bandwidth_gb_s"] = found.limits.read_bytes_per_second / 1e9;
  report["peak_gflops"] = {{"f32", found.limits.f32_ops_per_second / 1e9},
                           {"bf16", gops(found.limits.bf16_ops_per_second)},
                           {"int8", gops(found.limits.int8_ops_per_second)}};
  report["devices"] = OrderedJson::array();
  for (const DeviceState& device : found.devices) {
    report["devices"].push_back({{"name", device.name},
                                 {"usable", !device.problem},
                                 {"reason", or_null<OrderedJson>(device.problem)}});
  }
  report["build"] = {{"compiler", found.build.compiler},
                     {"standard_library", found.build.standard_library},
                     {"type", found.build.type},
                     {"target", found.build.target}};
  return report;
}

}  // namespace

ExitCode run_doctor(std::span<const std::string> arguments, Output& output) {
  ModelOptions options;
  bool json = false;
  bool help_flag = false;
  OptionSet set{std::string(kIntroduction), {}};
  set.group("Options");
  declare_processor(set, options);
  set.flag("--json", "One JSON object", json);
  set.flag("-h,--help", "This text", help_flag);
  if (!set.read(arguments)) {
    output.write(set.help());
  } else {
    const Findings found = find(options);
    output.write(json ? json_text(json_report(found)) + "\n" : text_report(found));
  }
  return output.finish();
}

}  // namespace qgen::cli
