#include "support/process.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <stdexcept>

namespace qgen::test {
namespace {

constexpr std::chrono::seconds kPatience{60};

/// Both ends of a connection: the test's and the program's; -1 where there is none.
struct Ends {
  int ours = -1, theirs = -1;
};

void check(bool ok, const char* what) {
  if (!ok) throw std::runtime_error(std::string("cannot set up the program: ") + what);
}

Ends open_stream(Stream kind, const std::string& path, bool program_reads) {
  Ends ends;
  if (kind == Stream::pipe) {
    std::array<int, 2> pipe{};
    check(::pipe2(pipe.data(), O_CLOEXEC) == 0, "pipe");
    ends = program_reads ? Ends{pipe[1], pipe[0]} : Ends{pipe[0], pipe[1]};
  } else if (kind == Stream::terminal) {
    termios raw{};
    ::cfmakeraw(&raw);
    check(::openpty(&ends.ours, &ends.theirs, nullptr, &raw, nullptr) == 0, "openpty");
  } else if (kind == Stream::path) {
    const int flags = program_reads ? O_RDONLY : O_WRONLY | O_CREAT | O_TRUNC;
    ends.theirs = ::open(path.c_str(), flags | O_CLOEXEC, 0600);
    check(ends.theirs >= 0, path.c_str());
  }
  if (ends.ours >= 0) {
    ::fcntl(ends.ours, F_SETFD, FD_CLOEXEC);
    ::fcntl(ends.ours, F_SETFL, O_NONBLOCK);
  }
  return ends;
}

void limit(int resource, std::size_t value) {
  const rlimit both{value, value};
  if (value > 0) ::setrlimit(static_cast<__rlimit_resource>(resource), &both);
}

/// In the child: gives the streams their places. They are moved out of the way first, so that none of them
/// is overwritten before it is used.
void place_streams(const std::array<int, 3>& streams) {
  std::array<int, 3> moved{};
  for (std::size_t i = 0; i < 3; ++i) moved[i] = streams[i] < 0 ? -1 : ::fcntl(streams[i], F_DUPFD, 10);
  for (std::size_t i = 0; i < 3; ++i) {
    const int target = static_cast<int>(i);
    moved[i] < 0 ? ::close(target) : ::dup2(moved[i], target);
  }
  for (const int fd : moved) {
    if (fd >= 0) ::close(fd);
  }
}

[[noreturn]] void become(const std::string& program, const Launch& launch,
                         const std::array<int, 3>& streams) {
  ::setsid();
  place_streams(streams);
  for (const auto& [name, value] : launch.environment) ::setenv(name.c_str(), value.c_str(), 1);
  std::vector<char*> arguments{const_cast<char*>(program.c_str())};
  for (const std::string& argument : launch.arguments)
    arguments.push_back(const_cast<char*>(argument.c_str()));
  arguments.push_back(nullptr);
  limit(RLIMIT_AS, launch.address_space);
  limit(RLIMIT_FSIZE, launch.file_size);
  ::execv(program.c_str(), arguments.data());
  ::_exit(127);
}

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
}

void close_fd(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

}  // namespace

Process::Process(const std::string& program, const Launch& launch)
    : keep_input_open_(launch.keep_input_open), input_(launch.input) {
  ::signal(SIGPIPE, SIG_IGN);
  const Ends in = open_stream(launch.in, launch.in_path, true);
  const Ends out = open_stream(launch.out, launch.out_path, false);
  const Ends err = open_stream(launch.err, launch.err_path, false);
  pid_ = ::fork();
  check(pid_ >= 0, "fork");
  if (pid_ == 0) {
    // Whoever runs the tests in the background has these ignored, which programs inherit.
    for (const int signal : {SIGPIPE, SIGINT, SIGTERM}) ::signal(signal, SIG_DFL);
    become(program, launch, {in.theirs, out.theirs, err.theirs});
  }
  for (int fd : {in.theirs, out.theirs, err.theirs}) close_fd(fd);
  in_ = in.ours;
  out_.fd = out.ours;
  err_.fd = err.ours;
}

Process::~Process() {
  if (pid_ > 0) {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }
  for (int* fd : {&in_, &out_.fd, &err_.fd}) close_fd(*fd);
}

void Process::pump_input() {
  const ssize_t count = ::write(in_, input_.data(), input_.size());
  if (count > 0) input_.erase(0, static_cast<std::size_t>(count));
  const bool broken = count < 0 && errno != EAGAIN;
  if (broken || (input_.empty() && !keep_input_open_)) close_fd(in_);
}

void Process::pump_output(Reader& reader) {
  std::array<char, 65536> bytes;
  const ssize_t count = ::read(reader.fd, bytes.data(), bytes.size());
  if (count > 0) {
    reader.text.append(bytes.data(), static_cast<std::size_t>(count));
  } else if (count == 0 || errno != EAGAIN) {
    close_fd(reader.fd);  // a terminal reports its end as EIO
  }
}

/// Moves what can be moved; false after the deadline or where both outputs have ended.
bool Process::pump(std::chrono::steady_clock::time_point deadline) {
  if (out_.fd < 0 && err_.fd < 0) return false;
  const bool writing = in_ >= 0 && (!input_.empty() || !keep_input_open_);
  std::array<pollfd, 3> entries{pollfd{writing ? in_ : -1, POLLOUT, 0}, pollfd{out_.fd, POLLIN, 0},
                                pollfd{err_.fd, POLLIN, 0}};
  const auto left =
      std::chrono::duration_cast<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  if (left.count() <= 0 || ::poll(entries.data(), entries.size(), static_cast<int>(left.count())) <= 0) {
    return false;
  }
  if (entries[0].revents != 0) pump_input();
  if (entries[1].revents != 0) pump_output(out_);
  if (entries[2].revents != 0) pump_output(err_);
  return true;
}

bool Process::wait_for_output(std::size_t count) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (out_.text.size() < count && out_.fd >= 0 && pump(deadline)) {
  }
  return out_.text.size() >= count;
}

bool Process::wait_for_errors(std::string_view text) {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (err_.text.find(text) == std::string::npos && err_.fd >= 0 && pump(deadline)) {
  }
  return err_.text.find(text) != std::string::npos;
}

bool Process::wait_for_stuck_output() const {
  constexpr int kPageOfThePipe = 4096;
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  int before = 0;
  while (std::chrono::steady_clock::now() < deadline) {
    int waiting = 0;
    if (::ioctl(out_.fd, FIONREAD, &waiting) != 0) return false;
    if (waiting > kPageOfThePipe && waiting == before) return true;
    before = waiting;
    ::usleep(200'000);
  }
  return false;
}

void Process::close_output() {
  close_fd(out_.fd);
}

void Process::send(int signal) const {
  ::kill(pid_, signal);
}

bool Process::is_running() const {
  siginfo_t info{};  // WNOWAIT leaves the status for finish()
  return ::waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOHANG | WNOWAIT) == 0 &&
         info.si_pid == 0;
}

Result Process::finish() {
  const auto deadline = std::chrono::steady_clock::now() + kPatience;
  while (pump(deadline)) {
  }
  Result result;
  int status = 0;
  rusage usage{};
  while (::wait4(pid_, &status, WNOHANG, &usage) == 0) {
    if (std::chrono::steady_clock::now() > deadline) {
      result.timed_out = true;
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, &status, 0);
      break;
    }
    ::usleep(1000);
  }
  pid_ = -1;
  result.cpu_seconds = seconds(usage.ru_utime) + seconds(usage.ru_stime);
  if (WIFEXITED(status)) result.status = WEXITSTATUS(status);
  if (WIFSIGNALED(status)) result.signal = WTERMSIG(status);
  result.out = std::move(out_.text);
  result.err = std::move(err_.text);
  return result;
}

Result run(const std::string& program, const Launch& launch) {
  return Process(program, launch).finish();
}

}  // namespace qgen::test
