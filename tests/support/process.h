#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace qgen::test {

/// What one of the standard streams of a program is connected to.
enum class Stream {
  pipe,      ///< read and written by the test
  terminal,  ///< a terminal of its own, without translation of bytes
  closed,
  path,  ///< a file, device or folder
};

struct Launch {
  std::vector<std::string> arguments;
  std::vector<std::pair<std::string, std::string>> environment;  ///< added to the test's own
  Stream in = Stream::path, out = Stream::pipe, err = Stream::pipe;
  std::string in_path = "/dev/null", out_path, err_path;  ///< for Stream::path
  std::string input;                                      ///< sent through a pipe or terminal
  bool keep_input_open = false;                           ///< no end of file after `input`
  std::size_t address_space = 0;                          ///< bytes; 0: no limit
  std::size_t file_size = 0;                              ///< most bytes of a file it writes; 0: no limit
};

struct Result {
  int status = -1;  ///< exit status; -1 where a signal ended it
  int signal = 0;
  bool timed_out = false;
  double cpu_seconds = 0;  ///< processor time, its own and the system's
  std::string out, err;
};

/// A running program with its streams. Killed when destroyed.
class Process {
 public:
  Process(const std::string& program, const Launch& launch);
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  /// Moves bytes until stdout has `count` of them; false after the time is up or stdout has ended.
  bool wait_for_output(std::size_t count);
  bool wait_for_errors(std::string_view text);  ///< the same until stderr holds `text`
  /// Leaves stdout alone until the pipe is full; false after the time is up.
  [[nodiscard]] bool wait_for_stuck_output() const;
  void close_output();  ///< the reader goes away
  void send(int signal) const;
  [[nodiscard]] bool is_running() const;
  [[nodiscard]] std::string_view output() const { return out_.text; }
  /// Moves bytes until the program has ended.
  Result finish();

 private:
  struct Reader {
    int fd = -1;
    std::string text;
  };
  bool pump(std::chrono::steady_clock::time_point deadline);
  void pump_input();
  static void pump_output(Reader& reader);

  int pid_ = -1;
  int in_ = -1;
  bool keep_input_open_ = false;
  std::string input_;
  Reader out_, err_;
};

/// Runs a program to its end.
Result run(const std::string& program, const Launch& launch);

}  // namespace qgen::test
