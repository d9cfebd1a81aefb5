#pragma once

#include <string>

namespace qgen::cli {

/// "qgen 0.1.0", with the commit where the build knew it.
[[nodiscard]] std::string version_text();
/// "0.1.0".
[[nodiscard]] std::string version_number();

/// How the program was built.
struct BuildInfo {
  std::string compiler;
  std::string type;
  std::string target;
  std::string standard_library;
};
[[nodiscard]] BuildInfo build_info();

}  // namespace qgen::cli
