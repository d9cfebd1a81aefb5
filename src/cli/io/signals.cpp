#include "cli/io/signals.h"

#include <termios.h>
#include <unistd.h>

#include <csignal>

#include "cli/exit_code.h"

namespace qgen::cli {
namespace {

// A signal handler has no other way to leave word.
std::atomic<bool> interrupt_flag{false};
static_assert(std::atomic<bool>::is_always_lock_free, "a signal handler must not take a lock");

[[noreturn]] void leave() {
  ::_exit(static_cast<int>(ExitCode::interrupted));
}

void exit_at_once(int /*signal*/) {
  // The line of progress that may be on a terminal would stay in front of the shell's next prompt.
  termios settings{};
  if (::tcgetattr(STDERR_FILENO, &settings) == 0) static_cast<void>(::write(STDERR_FILENO, "\n", 1) == 1);
  leave();
}

void note_interrupt(int /*signal*/) {
  if (interrupt_flag.exchange(true)) leave();
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return ::sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

void set_handler(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  ::sigemptyset(&action.sa_mask);
  action.sa_flags = 0;  // no SA_RESTART: a blocking read must notice
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void handle_signals(OnInterrupt mode) {
  set_handler(SIGPIPE, SIG_IGN);
  set_handler(SIGXFSZ, SIG_IGN);
  const auto handler = mode == OnInterrupt::exit_at_once ? exit_at_once : note_interrupt;
  for (const int signal : {SIGINT, SIGTERM}) {
    if (!is_ignored(signal)) set_handler(signal, handler);
  }
}

const std::atomic<bool>& interrupted() noexcept {
  return interrupt_flag;
}

}  // namespace qgen::cli
