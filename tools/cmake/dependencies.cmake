# Libraries come from the system where it has them; FetchContent is the fallback for systems that do not.
include(FetchContent)

find_package(Threads REQUIRED)

function(qgen_dependency package target version url)
  find_package(${package} ${version} QUIET)
  if(NOT TARGET ${target})
    message(STATUS "${package}: not installed, fetching ${url}")
    string(TOLOWER ${package} name)
    FetchContent_Declare(${name} URL ${url})
    FetchContent_MakeAvailable(${name})
  endif()
endfunction()

qgen_dependency(CLI11 CLI11::CLI11 "2.1" https://github.com/CLIUtils/CLI11/archive/refs/tags/v2.3.2.tar.gz)
qgen_dependency(nlohmann_json nlohmann_json::nlohmann_json "3.10"
  https://github.com/nlohmann/json/releases/download/v3.11.2/json.tar.xz)
qgen_dependency(spdlog spdlog::spdlog_header_only "1.9" https://github.com/gabime/spdlog/archive/refs/tags/v1.10.0.tar.gz)
if(QGEN_BUILD_TESTS)
  qgen_dependency(GTest GTest::gmock "" https://github.com/google/googletest/archive/refs/tags/v1.12.1.tar.gz)
endif()
