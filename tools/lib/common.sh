# shellcheck shell=bash
# Shared by tools/quickstart, tools/test, tools/fuzz and .ci/run; source it, it runs nothing by itself.
# Everything is said on stderr: stdout belongs to what was asked for.

root=$(cd -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd -P)

# What is needed, one thing a line: kind, what to look for, Debian's package. A "tool" must be there; a "header"
# that is not can also be downloaded by CMake.
build_needs='tool cmake cmake
tool c++ g++
tool ninja ninja-build
header CLI/CLI.hpp libcli11-dev
header nlohmann/json.hpp nlohmann-json3-dev
header spdlog/spdlog.h libspdlog-dev'
# shellcheck disable=SC2034  # for the scripts that source this
test_needs="$build_needs
tool python3 python3
header gtest/gtest.h libgtest-dev
header gmock/gmock.h libgmock-dev"

say() { printf '%s\n' "$*" >&2; }

die() {
  say "$(basename -- "$0"): $*"
  exit 1
}

have() { command -v "$1" >/dev/null 2>&1; }

# Whether the compiler finds a header; no compiler, no header.
have_header() { printf '#include <%s>\n' "$1" | ${CXX:-c++} -std=c++20 -E -x c++ - >/dev/null 2>&1; }

# missing KIND NEEDS: the packages, one a line, of that kind whose tool or header is not there.
missing() {
  local kind what package
  while read -r kind what package; do
    if [[ $kind != "$1" ]]; then continue; fi
    case $kind-$what in
      tool-c++) have "${CXX:-c++}" || echo "$package" ;;
      tool-ninja) have ninja || have make || echo "$package" ;;
      tool-*) have "$what" || echo "$package" ;;
      header-*) have_header "$what" || echo "$package" ;;
    esac
  done <<<"$2"
}

# Runs a command as root: directly, or by sudo where that works (it may ask for a password on a terminal).
as_root() {
  if [[ $(id -u) == 0 ]]; then
    "$@"
  elif have sudo && { sudo -n true 2>/dev/null || [[ -t 0 && -t 2 ]]; }; then
    sudo "$@"
  else
    return 1
  fi
}

# apt_install PACKAGE...: installs Debian packages; tries three times, for a network that stumbles.
apt_install() {
  local log try
  have apt-get && as_root true || return 1
  say "installing $*"
  log=$(mktemp)
  for try in 1 2 3; do
    if { as_root apt-get -q update && as_root env DEBIAN_FRONTEND=noninteractive \
      apt-get -qy -o DPkg::Lock::Timeout=300 --no-install-recommends install "$@"; } </dev/null >"$log" 2>&1; then
      rm -f -- "$log"
      return 0
    fi
    sleep "$try"
  done
  tail -n 20 -- "$log" >&2
  rm -f -- "$log"
  return 1
}

# need NEEDS: installs what is missing. Stops where a tool is missing and cannot be installed; libraries that
# cannot be installed are left to CMake.
need() {
  local packages version
  packages=$(missing tool "$1" && missing header "$1")
  # shellcheck disable=SC2086  # package names, split at white space
  if [[ -n $packages ]] && ! apt_install $packages; then
    packages=$(missing tool "$1" | tr '\n' ' ')
    if [[ -n $packages ]]; then
      die "cannot install what is missing here; install it and run this again (Debian's names): $packages$(
        missing header "$1" | tr '\n' ' ')"
    fi
    say "not installed (Debian's names): $(missing header "$1" | tr '\n' ' ')- CMake will download them"
  fi
  version=$(cmake --version 2>/dev/null | sed -n '1s/[^0-9]*\([0-9]*\.[0-9]*\).*/\1/p')
  if [[ -n $version && $(printf '3.25\n%s\n' "$version" | sort -V | head -n 1) != 3.25 ]]; then
    die "CMake 3.25 or newer is needed and this is $version; 'pip install cmake' gives a newer one"
  fi
}

# How many compilers to run at once: one per processor, as long as each has a gigabyte.
job_count() {
  local processors kilobytes by_memory
  processors=$(nproc 2>/dev/null || getconf _NPROCESSORS_ONLN)
  kilobytes=$(sed -n 's/^MemAvailable: *\([0-9]*\).*/\1/p' /proc/meminfo 2>/dev/null || true)
  by_memory=$((${kilobytes:-4194304} / 1048576))
  if ((by_memory < 1)); then by_memory=1; fi
  echo $((processors < by_memory ? processors : by_memory))
}

# Passes build lines to a log; says so at each tenth ("[3/40]" of Ninja, "[ 7%]" of make).
show_tenths() {
  local log=$1 line percent tenth=0
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$log"
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] ]]; then
      percent=$((BASH_REMATCH[1] * 100 / BASH_REMATCH[2]))
    elif [[ $line =~ ^\[\ *([0-9]+)%\] ]]; then
      percent=${BASH_REMATCH[1]}
    else
      continue
    fi
    if ((percent / 10 > tenth)); then
      tenth=$((percent / 10))
      say "  $((tenth * 10)) %"
    fi
  done
}

# build PRESET [TARGET...]: configures and builds all or these into build/PRESET; what went wrong is shown.
build() {
  local preset=$1 log="$root/build/$1.log"
  shift
  mkdir -p -- "$root/build"
  : >"$log"
  if have ninja; then export CMAKE_GENERATOR=${CMAKE_GENERATOR:-Ninja}; fi
  if have ccache; then export CMAKE_CXX_COMPILER_LAUNCHER=ccache; fi
  say "configuring build/$preset"
  if ! (cd -- "$root" && cmake --preset "$preset") </dev/null >>"$log" 2>&1; then
    tail -n 30 -- "$log" >&2
    die "CMake could not configure the build; these packages are what it needs (Debian's names): $(
      while read -r _ _ package; do printf '%s ' "$package"; done <<<"$test_needs")"
  fi
  say "building with $(job_count) jobs"
  if ! cmake --build "$root/build/$preset" -j "$(job_count)" ${1+--target "$@"} </dev/null 2>&1 | show_tenths "$log"; then
    grep -E -A 12 'error|FAILED|Error ' -- "$log" | head -n 60 >&2 || tail -n 60 -- "$log" >&2
    die "the build failed; its whole log is $log"
  fi
}
