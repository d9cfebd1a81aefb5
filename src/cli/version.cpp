#include "cli/version.h"

#include <version>

namespace qgen::cli {

std::string version_number() {
  return QGEN_VERSION;
}

std::string version_text() {
  const std::string commit = QGEN_COMMIT;
  return "qgen " + version_number() + (commit.empty() ? "" : " (" + commit + ")");
}

BuildInfo build_info() {
  BuildInfo info;
#if defined(__clang__)
  info.compiler = "clang " __clang_version__;
#else
  info.compiler = "g++ " __VERSION__;
#endif
  info.type = QGEN_BUILD_TYPE;
#if defined(__x86_64__)
  info.target = "x86_64";
#elif defined(__aarch64__)
  info.target = "aarch64";
#else
  info.target = "unknown";
#endif
#if defined(__GLIBCXX__)
  info.standard_library = "libstdc++ " + std::to_string(__GLIBCXX__);
#else
  info.standard_library = "unknown";
#endif
  return info;
}

}  // namespace qgen::cli
