#include "halograd/comm/waiting.hpp"

#include "halograd/core/error.hpp"

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <climits>
#include <ctime>
#include <thread>

namespace halograd::comm {

namespace {

using namespace std::chrono_literals;

constexpr auto spin_time = 5us;  // about what a sleep and a wake-up cost
constexpr int yields = 20;       // then sleep
constexpr int short_sleeps = 500;
constexpr auto short_sleep = 20us;
constexpr auto long_sleep = 500us;
constexpr long cancellation_poll_ns = 100'000'000;

thread_local const std::atomic<bool>* cancellation = nullptr;
thread_local auto wait_limit = std::chrono::steady_clock::time_point::max();

// The process-shared form: std::atomic::wait sleeps on a word of its own process only.
void futex_wait(std::atomic<std::uint32_t>& word, std::uint32_t seen) {
  const timespec limit{0, cancellation_poll_ns};
  syscall(SYS_futex, &word, FUTEX_WAIT, seen, &limit, nullptr, 0);
}

void futex_wake_all(std::atomic<std::uint32_t>& word) {
  syscall(SYS_futex, &word, FUTEX_WAKE, INT_MAX, nullptr, nullptr, 0);
}

template <typename Ready>
bool spin_until(const Ready& ready) {
  const auto end = std::chrono::steady_clock::now() + spin_time;
  do {
    for (int i = 0; i < 16; ++i) {
      if (ready()) return true;
    }
  } while (std::chrono::steady_clock::now() < end);
  return ready();
}

}  // namespace

void set_cancellation(const std::atomic<bool>* flag) {
  cancellation = flag;
}

void throw_if_cancelled() {
  if (cancellation != nullptr && cancellation->load(std::memory_order_relaxed)) {
    throw ResourceError("communication given up, because this rank failed");
  }
  if (std::chrono::steady_clock::now() > wait_limit) throw ResourceError("communication given up: no rank answered");
}

WaitLimit::WaitLimit(std::chrono::milliseconds patience) {
  wait_limit = std::chrono::steady_clock::now() + patience;
}

WaitLimit::~WaitLimit() {
  wait_limit = std::chrono::steady_clock::time_point::max();
}

bool may_spin(int ranks) {
  return ranks <= sysconf(_SC_NPROCESSORS_ONLN);
}

void Backoff::pause() {
  ++turns_;
  if (spin_) {
    const auto now = std::chrono::steady_clock::now();
    if (turns_ == 1) start_ = now;
    if (now - start_ < spin_time) return;
    spin_ = false;
    turns_ = 1;
  }
  if (turns_ <= yields) {
    sched_yield();
    return;
  }
  throw_if_cancelled();
  std::this_thread::sleep_for(turns_ < yields + short_sleeps ? short_sleep : long_sleep);
}

void SharedWord::set(std::uint32_t value) {
  // Sequentially consistent with the waiter's count and look: one of the two sees the other.
  value_.store(value);
  if (waiting_.load() != 0) futex_wake_all(value_);
}

void SharedWord::wait_until(std::uint32_t value, bool spin) {
  if (load() == value) return;
  if (spin && spin_until([&] { return load() == value; })) return;
  struct Waiting {
    std::atomic<std::uint32_t>& count;
    explicit Waiting(std::atomic<std::uint32_t>& c) : count(c) { count.fetch_add(1); }
    ~Waiting() { count.fetch_sub(1); }
  } waiting(waiting_);
  for (std::uint32_t seen = value_.load(); seen != value; seen = value_.load()) {
    throw_if_cancelled();
    futex_wait(value_, seen);
  }
}

void SharedBarrier::arrive_and_wait(int processes, bool spin) {
  const std::uint32_t next = generation_.load() + 1;
  if (arrived_.fetch_add(1) + 1 == static_cast<std::uint32_t>(processes)) {
    arrived_.store(0);
    generation_.set(next);
  } else {
    generation_.wait_until(next, spin);
  }
}

}  // namespace halograd::comm
