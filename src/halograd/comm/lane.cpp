#include "halograd/comm/lane.hpp"

#include "halograd/comm/waiting.hpp"
#include "halograd/core/system.hpp"

#include <array>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

namespace halograd {

struct Lane::Implementation {
  static constexpr std::uint64_t capacity = 1024;

  Implementation() : thread([this] { serve(); }) {}

  ~Implementation() {
    {
      const std::lock_guard lock(mutex);
      closing = true;
      // While an exception unwinds the ranks that a job waits for may never answer.
      if (std::uncaught_exceptions() > 0) cancelled = true;
    }
    posted_or_closing.notify_one();
    thread.join();
  }

  void serve() {
    comm::set_cancellation(&cancelled);
    std::unique_lock lock(mutex);
    while (true) {
      posted_or_closing.wait(lock, [this] { return finished < posted || closing; });
      if (finished == posted) return;
      const auto* job = queue[finished % capacity];
      // What follows a failed job would wait for messages that never come.
      if (!failure) {
        lock.unlock();
        std::exception_ptr thrown;
        try {
          (*job)();
        } catch (...) {
          thrown = std::current_exception();
        }
        lock.lock();
        failure = thrown;
        if (failure) failed_ticket = finished + 1;
      }
      ++finished;
      progressed.notify_all();
    }
  }

  std::mutex mutex;
  std::condition_variable posted_or_closing;
  std::condition_variable progressed;
  std::array<const std::function<void()>*, capacity> queue{};
  std::uint64_t posted = 0;
  std::uint64_t finished = 0;
  bool closing = false;
  std::exception_ptr failure;
  std::uint64_t failed_ticket = 0;
  std::atomic<bool> cancelled{false};
  std::thread thread;  // last: it uses the rest
};

Lane::Lane() : implementation_(std::make_unique<Implementation>()) {}
Lane::~Lane() = default;
Lane::Lane(Lane&&) noexcept = default;
Lane& Lane::operator=(Lane&&) noexcept = default;

std::uint64_t Lane::start(const std::function<void()>& job) {
  auto& lane = *implementation_;
  std::uint64_t ticket = 0;
  {
    std::unique_lock lock(lane.mutex);
    lane.progressed.wait(lock, [&] { return lane.posted - lane.finished < Implementation::capacity; });
    lane.queue[lane.posted % Implementation::capacity] = &job;
    ticket = ++lane.posted;
  }
  lane.posted_or_closing.notify_one();
  return ticket;
}

double Lane::wait(std::uint64_t ticket) {
  auto& lane = *implementation_;
  const double begin = now_seconds();
  std::unique_lock lock(lane.mutex);
  lane.progressed.wait(lock, [&] { return lane.finished >= ticket; });
  if (lane.failure && lane.failed_ticket <= ticket) std::rethrow_exception(lane.failure);
  return now_seconds() - begin;
}

}  // namespace halograd
