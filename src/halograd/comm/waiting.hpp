#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace halograd::comm {

/// Waits of this thread throw ResourceError once `*flag` is set: a Lane that has to end while an exception unwinds must
/// not wait for ranks that may never answer. Null (the default) switches that off.
void set_cancellation(const std::atomic<bool>* flag);
void throw_if_cancelled();

/// While it lives, waits of this thread throw ResourceError once `patience` is over.
class WaitLimit {
public:
  explicit WaitLimit(std::chrono::milliseconds patience);
  ~WaitLimit();
  WaitLimit(const WaitLimit&) = delete;
  WaitLimit& operator=(const WaitLimit&) = delete;
};

/// Whether `ranks` waiting threads may spin for a moment before they sleep: only where each has a processor of its own.
bool may_spin(int ranks);

/// What a thread does between two looks at something it can only poll: spins a few microseconds where it may, then
/// yields, then sleeps, so that a core is free for whoever has work.
class Backoff {
public:
  explicit Backoff(bool spin) : spin_(spin) {}
  void pause();

private:
  bool spin_;
  int turns_ = 0;
  std::chrono::steady_clock::time_point start_{};
};

/// A 32-bit value in shared memory that one process sets and others sleep on (a futex; zero bytes are a valid start).
class SharedWord {
public:
  [[nodiscard]] std::uint32_t load() const { return value_.load(std::memory_order_acquire); }
  /// Sets the value and wakes whoever waits; everything written before is visible to them.
  void set(std::uint32_t value);
  /// Returns when the value is `value`.
  void wait_until(std::uint32_t value, bool spin);

private:
  std::atomic<std::uint32_t> value_{0};
  std::atomic<std::uint32_t> waiting_{0};
};

/// A barrier in shared memory for a fixed number of processes (zero bytes are a valid start).
class SharedBarrier {
public:
  void arrive_and_wait(int processes, bool spin);

private:
  alignas(64) std::atomic<std::uint32_t> arrived_{0};
  alignas(64) SharedWord generation_;
};

}  // namespace halograd::comm
