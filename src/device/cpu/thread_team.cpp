#include "device/cpu/thread_team.h"

#include <string>
#include <system_error>

#include "qgen/base/error.h"
#include "qgen/device/cpu_info.h"

namespace qgen {
namespace {

/// About 10 microseconds: longer than a stage's usual imbalance. Four times as long gains nothing on an idle
/// machine and halves the speed on one that other programs keep busy.
constexpr int kSpins = 1000;

/// Where members share a processor, the one that spins keeps the one that it waits for from running.
int spins_for(int threads) {
  return threads <= read_cpu_info().affinity ? kSpins : 0;
}

void relax() noexcept {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

/// Returns once `value` differs from `old`.
void wait_for_change(const std::atomic<std::uint32_t>& value, std::uint32_t old, int spins) noexcept {
  for (int i = 0; i < spins; ++i) {
    if (value.load(std::memory_order_acquire) != old) return;
    relax();
  }
  while (value.load(std::memory_order_acquire) == old) value.wait(old, std::memory_order_acquire);
}

}  // namespace

ThreadTeam::ThreadTeam(int threads) : size_(threads), spins_(spins_for(threads)) {
  threads_.reserve(static_cast<std::size_t>(threads - 1));
  try {
    for (int member = 1; member < threads; ++member)
      threads_.emplace_back([this, member] { worker(member); });
  } catch (const std::system_error& error) {
    stop();
    // The system's limits on threads and on memory are told apart by nothing but this error.
    throw Error(ErrorKind::memory, "cannot start thread " + std::to_string(threads_.size() + 2) + " of " +
                                       std::to_string(threads) + ": " + error.what() +
                                       "; use fewer --threads");
  } catch (...) {
    stop();
    throw;
  }
}

ThreadTeam::~ThreadTeam() {
  stop();
}

void ThreadTeam::stop() noexcept {
  stopping_.store(true, std::memory_order_relaxed);
  jobs_.fetch_add(1, std::memory_order_seq_cst);
  jobs_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

void ThreadTeam::run(const std::function<void(int)>& work) {
  work_ = &work;
  jobs_.fetch_add(1, std::memory_order_seq_cst);
  jobs_.notify_all();
  work(0);
  barrier();
}

void ThreadTeam::worker(int member) {
  std::uint32_t seen = 0;
  for (;;) {
    wait_for_change(jobs_, seen, spins_);
    ++seen;
    if (stopping_.load(std::memory_order_relaxed)) return;
    (*work_)(member);
    barrier();
  }
}

void ThreadTeam::barrier() noexcept {
  if (size_ == 1) return;
  const std::uint32_t phase = phase_.load(std::memory_order_relaxed);
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == static_cast<std::uint32_t>(size_)) {
    arrived_.store(0, std::memory_order_relaxed);
    // A full fence: notify_all() must not look for sleepers before they can see the new phase, or one sleeps
    // on.
    phase_.fetch_add(1, std::memory_order_seq_cst);
    phase_.notify_all();
  } else {
    wait_for_change(phase_, phase, spins_);
  }
}

}  // namespace qgen
