#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <thread>
#include <vector>

namespace qgen {

/// A fixed team of threads that run one function together and meet at barriers inside it. The calling thread
/// is member 0. Waiting spins briefly, then sleeps, so that a busy or oversubscribed machine is not made
/// worse.
class ThreadTeam {
 public:
  /// `threads` >= 1. Throws Error{memory} where the system gives no thread.
  explicit ThreadTeam(int threads);
  ~ThreadTeam();
  ThreadTeam(const ThreadTeam&) = delete;
  ThreadTeam& operator=(const ThreadTeam&) = delete;

  [[nodiscard]] int size() const noexcept { return size_; }

  /// Calls work(member) on every member and returns when all are done. `work` must not throw.
  void run(const std::function<void(int member)>& work);

  /// Waits until every member has arrived; to be called by all members, inside run() only.
  void barrier() noexcept;

 private:
  void worker(int member);
  void stop() noexcept;

  int size_;
  int spins_;                                       // before sleeping
  const std::function<void(int)>* work_ = nullptr;  // written before jobs_ is advanced
  alignas(64) std::atomic<std::uint32_t> jobs_{0};
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) std::atomic<std::uint32_t> phase_{0};
  std::atomic<bool> stopping_{false};
  std::vector<std::thread> threads_;
};

}  // namespace qgen
