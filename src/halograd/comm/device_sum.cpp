#include "halograd/comm/reduction_paths.hpp"

#include <algorithm>

namespace halograd::comm {
namespace {

template <typename T>
std::int64_t bytes_of(std::int64_t count) {
  return count * static_cast<std::int64_t>(sizeof(T));
}

template <typename T>
class StagedSum final : public SumReduction<T>::Implementation {
public:
  StagedSum(const Link& link, std::int64_t usual_count)
      : queue_(link.queue),
        usual_count_(std::max<std::int64_t>(1, usual_count)),
        host_(link.communicator, usual_count_),
        pinned_(link.device.allocate_host(bytes_of<T>(usual_count_))) {}

  void run(T* values, std::int64_t count, bool contributes) override {
    T* const staged = reinterpret_cast<T*>(pinned_.data());
    for (std::int64_t at = 0; at < count; at += usual_count_) {
      const std::int64_t piece = std::min(usual_count_, count - at);
      if (contributes) queue_.copy(values + at, staged, bytes_of<T>(piece));
      // Also for those that do not contribute: the copy of the sum before may still read the pinned memory.
      queue_.synchronize();
      host_.run(staged, piece, contributes);
      queue_.copy(staged, values + at, bytes_of<T>(piece));
    }
  }

private:
  Queue queue_;
  std::int64_t usual_count_;
  SumReduction<T> host_;
  DeviceMemory pinned_;
};

template <typename T>
class QueueSum final : public SumReduction<T>::Implementation {
public:
  explicit QueueSum(const Link& link) : queue_(link.queue), nccl_(link.nccl) {}

  void run(T* values, std::int64_t count, bool contributes) override {
    if (!contributes) queue_.clear(values, bytes_of<T>(count));
    if (nccl_ && count > 0) nccl_->sum(values, count, queue_);
  }

private:
  Queue queue_;
  std::shared_ptr<NcclCommunicator> nccl_;  // null: one rank alone
};

}  // namespace

template <typename T>
SumPath<T> make_staged_sum(const Link& link, std::int64_t usual_count) {
  return std::make_unique<StagedSum<T>>(link, usual_count);
}

template <typename T>
SumPath<T> make_queue_sum(const Link& link) {
  return std::make_unique<QueueSum<T>>(link);
}

template SumPath<float> make_staged_sum<float>(const Link&, std::int64_t);
template SumPath<double> make_staged_sum<double>(const Link&, std::int64_t);
template SumPath<float> make_queue_sum<float>(const Link&);
template SumPath<double> make_queue_sum<double>(const Link&);

}  // namespace halograd::comm
