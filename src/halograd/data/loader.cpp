#include "halograd/data/loader.hpp"

#include "halograd/core/error.hpp"
#include "halograd/core/system.hpp"

#include <algorithm>
#include <new>

namespace halograd {
namespace {

/// Makes `samples` n long without giving up a buffer: those left over wait in `spare`.
void resize_keeping_buffers(std::vector<RawSample>& samples, std::vector<std::vector<std::byte>>& spare,
                            std::size_t n) {
  while (samples.size() > n) {
    spare.push_back(std::move(samples.back().voxels));
    samples.pop_back();
  }
  while (samples.size() < n) {
    RawSample& sample = samples.emplace_back();
    if (spare.empty()) continue;
    sample.voxels = std::move(spare.back());
    spare.pop_back();
  }
}

}  // namespace

Loader::Loader(Dataset dataset, const Box& box)
    : dataset_(std::move(dataset)), source_(dataset_.source()), box_(box), thread_([this] { run(); }) {}

Loader::~Loader() {
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Loader::request(std::vector<std::int64_t> samples) {
  for (const std::int64_t sample : samples) {
    if (sample < 0 || sample >= dataset_.size()) {
      throw UsageError("sample {}: expected 0 to {}, the dataset's", sample, dataset_.size() - 1);
    }
  }
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(samples));
    ++requested_;
  }
  changed_.notify_all();
}

const Batch& Loader::take() {
  const double start = now_seconds();
  std::unique_lock lock(mutex_);
  if (taken_ == requested_) throw UsageError("no mini-batch to take: request() one first");
  const std::int64_t number = taken_++;  // gives the batch taken before back to the thread
  changed_.notify_all();
  changed_.wait(lock, [&] { return read_ > number; });
  Slot& done = slot(number);
  if (done.error) std::rethrow_exception(std::exchange(done.error, nullptr));
  done.batch.io_seconds = now_seconds() - start;
  return done.batch;
}

std::int64_t Loader::pending() const {
  const std::lock_guard lock(mutex_);
  return requested_ - taken_;
}

void Loader::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    // The slot of mini-batch number read_ is free once its earlier user, number read_ − slot_count, was given back.
    changed_.wait(lock, [this] { return stop_ || (!queue_.empty() && read_ < taken_ + slot_count - 1); });
    if (stop_) return;
    const std::vector<std::int64_t> samples = std::move(queue_.front());
    queue_.pop_front();
    Slot& next = slot(read_);
    lock.unlock();
    try {
      fill(next, samples);
    } catch (const std::bad_alloc&) {
      next.error = std::make_exception_ptr(ResourceError("no memory for a mini-batch of {} samples", samples.size()));
    } catch (...) {
      next.error = std::current_exception();
    }
    lock.lock();
    ++read_;
    changed_.notify_all();
  }
}

void Loader::fill(Slot& slot, const std::vector<std::int64_t>& samples) {
  Batch& batch = slot.batch;
  resize_keeping_buffers(batch.samples, slot.spare, samples.size());
  batch.targets.clear();
  batch.physical.clear();
  for (std::size_t i = 0; i < samples.size() && !stop_; ++i) {
    RawSample& sample = batch.samples[i];
    source_.read(dataset_.file(samples[i]), box_, sample);
    batch.targets.insert(batch.targets.end(), sample.targets.begin(), sample.targets.end());
    if (sample.physical) batch.physical.insert(batch.physical.end(), sample.physical->begin(), sample.physical->end());
  }
  if (batch.physical.size() != batch.targets.size()) batch.physical.clear();
}

}  // namespace halograd
