# Libraries come from the system where it has them; FetchContent is the fallback for systems that do not.
include(FetchContent)

find_package(Threads REQUIRED)

# Makes `target` available: from the installed `package` of at least `version`, else from the archive at `url`.
function(qgen_dependency package target version url sha256)
  find_package(${package} ${version} QUIET)
  if(TARGET ${target})
    return()
  endif()
  message(STATUS "${package}: not installed, fetching ${url}")
  # Nothing of a fetched library may land in our install tree.
  set(CLI11_INSTALL OFF)
  set(JSON_Install OFF)
  set(INSTALL_GTEST OFF)
  set(CMAKE_POLICY_DEFAULT_CMP0077 NEW)
  # The option SYSTEM of FetchContent_Declare() would do what the property below does, but CMake 3.25 takes it for a second
  # hash.
  FetchContent_Declare(${package} URL ${url} URL_HASH SHA256=${sha256} DOWNLOAD_EXTRACT_TIMESTAMP ON)
  FetchContent_MakeAvailable(${package})
  get_target_property(aliased ${target} ALIASED_TARGET)
  set_target_properties(${aliased} PROPERTIES SYSTEM ON)
endfunction()

qgen_dependency(CLI11 CLI11::CLI11 "2.1" https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.3.2.tar.gz
  aac0ab42108131ac5d3344a9db0fdf25c4db652296641955720a4fbe52334e22)
qgen_dependency(nlohmann_json nlohmann_json::nlohmann_json "3.10"
  https://github.com/nlohmann/json/releases/download/v3.11.2/json.tar.xz
  8c4b26bf4b422252e13f332bc5e388ec0ab5c3443d24399acb675e68278d341f)
qgen_dependency(spdlog spdlog::spdlog_header_only "1.9"
  https://github.com/gabime/spdlog/archive/refs/tags/v1.11.0.tar.gz
  ca5cae8d6cac15dae0ec63b21d6ad3530070650f68076f3a4a862ca293a858bb)
# Headers alone, also of fmt where spdlog is built on the system's: linking shared libraries would tie the program to
# machines that have them.
add_library(qgen_spdlog INTERFACE)
if(TARGET fmt::fmt-header-only)
  get_target_property(spdlog_headers spdlog::spdlog_header_only INTERFACE_INCLUDE_DIRECTORIES)
  target_include_directories(qgen_spdlog SYSTEM INTERFACE ${spdlog_headers})
  target_compile_definitions(qgen_spdlog INTERFACE SPDLOG_FMT_EXTERNAL)
  target_link_libraries(qgen_spdlog INTERFACE fmt::fmt-header-only)
else()
  target_link_libraries(qgen_spdlog INTERFACE spdlog::spdlog_header_only)
endif()
if(QGEN_BUILD_TESTS)
  qgen_dependency(GTest GTest::gmock "" https://github.com/google/googletest/archive/refs/tags/release-1.12.1.tar.gz
    81964fe578e9bd7c94dfdb09c8e4d6e6759e19967e397dbea48d1c10e45d0df2)
endif()
