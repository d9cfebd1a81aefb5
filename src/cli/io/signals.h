#pragma once

#include <atomic>

namespace qgen::cli {

/// What the first SIGINT or SIGTERM does; a second one always ends the program at once.
enum class OnInterrupt { finish_gracefully, exit_at_once };

/// Installs the handlers, except for a signal that the caller had the program ignore (as nohup and shells do
/// for jobs in the background). A closed pipe and a file-size limit become errors of write() instead of
/// signals.
void handle_signals(OnInterrupt mode);

/// Set by the first SIGINT or SIGTERM.
[[nodiscard]] const std::atomic<bool>& interrupted() noexcept;

}  // namespace qgen::cli
