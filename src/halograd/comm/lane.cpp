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
  virtual ~Implementation() = default;
  virtual std::uint64_t start(const std::function<void()>& job) = 0;
  virtual double wait(std::uint64_t ticket) = 0;
  virtual void forget_failure() = 0;
};

namespace {

class ThreadedLane final : public Lane::Implementation {
public:
  ThreadedLane() : thread_([this] { serve(); }) {}

  ~ThreadedLane() override {
    {
      const std::lock_guard lock(mutex_);
      closing_ = true;
      // While an exception unwinds the ranks that a job waits for may never answer.
      if (std::uncaught_exceptions() > 0) cancelled_ = true;
    }
    posted_or_closing_.notify_one();
    thread_.join();
  }

  std::uint64_t start(const std::function<void()>& job) override;
  double wait(std::uint64_t ticket) override;
  void forget_failure() override;

private:
  static constexpr std::uint64_t capacity = 1024;

  void serve();

  std::mutex mutex_;
  std::condition_variable posted_or_closing_;
  std::condition_variable progressed_;
  std::array<const std::function<void()>*, capacity> queue_{};
  std::uint64_t posted_ = 0;
  std::uint64_t finished_ = 0;
  bool closing_ = false;
  std::exception_ptr failure_;
  std::uint64_t failed_ticket_ = 0;
  std::atomic<bool> cancelled_{false};
  std::thread thread_;  // last: it uses the rest
};

void ThreadedLane::serve() {
  comm::set_cancellation(&cancelled_);
  std::unique_lock lock(mutex_);
  while (true) {
    posted_or_closing_.wait(lock, [this] { return finished_ < posted_ || closing_; });
    if (finished_ == posted_) return;
    const auto* job = queue_[finished_ % capacity];
    // What follows a failed job would wait for messages that never come.
    if (!failure_) {
      lock.unlock();
      std::exception_ptr thrown;
      try {
        (*job)();
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      failure_ = thrown;
      if (failure_) failed_ticket_ = finished_ + 1;
    }
    ++finished_;
    progressed_.notify_all();
  }
}

std::uint64_t ThreadedLane::start(const std::function<void()>& job) {
  std::uint64_t ticket = 0;
  {
    std::unique_lock lock(mutex_);
    progressed_.wait(lock, [&] { return posted_ - finished_ < capacity; });
    queue_[posted_ % capacity] = &job;
    ticket = ++posted_;
  }
  posted_or_closing_.notify_one();
  return ticket;
}

double ThreadedLane::wait(std::uint64_t ticket) {
  const double begin = now_seconds();
  std::unique_lock lock(mutex_);
  progressed_.wait(lock, [&] { return finished_ >= ticket; });
  if (failure_ && failed_ticket_ <= ticket) std::rethrow_exception(failure_);
  return now_seconds() - begin;
}

void ThreadedLane::forget_failure() {
  std::unique_lock lock(mutex_);
  progressed_.wait(lock, [this] { return finished_ == posted_; });
  failure_ = nullptr;
}

class ImmediateLane final : public Lane::Implementation {
public:
  std::uint64_t start(const std::function<void()>& job) override {
    ++posted_;
    if (failure_) return posted_;
    try {
      job();
    } catch (...) {
      failure_ = std::current_exception();
      failed_ticket_ = posted_;
    }
    return posted_;
  }

  double wait(std::uint64_t ticket) override {
    if (failure_ && failed_ticket_ <= ticket) std::rethrow_exception(failure_);
    return 0;
  }

  void forget_failure() override { failure_ = nullptr; }

private:
  std::uint64_t posted_ = 0;
  std::exception_ptr failure_;
  std::uint64_t failed_ticket_ = 0;
};

std::unique_ptr<Lane::Implementation> make(LaneMode mode) {
  if (mode == LaneMode::at_once) return std::make_unique<ImmediateLane>();
  return std::make_unique<ThreadedLane>();
}

}  // namespace

Lane::Lane(LaneMode mode) : implementation_(make(mode)) {}
Lane::~Lane() = default;
Lane::Lane(Lane&&) noexcept = default;
Lane& Lane::operator=(Lane&&) noexcept = default;

std::uint64_t Lane::start(const std::function<void()>& job) {
  return implementation_->start(job);
}

double Lane::wait(std::uint64_t ticket) {
  return implementation_->wait(ticket);
}

void Lane::forget_failure() {
  implementation_->forget_failure();
}

}  // namespace halograd
