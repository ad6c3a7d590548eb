#include "halograd/comm/mpi_sum.hpp"
#include "halograd/comm/reduction_paths.hpp"
#include "halograd/comm/shared_sum.hpp"

#include <algorithm>
#include <optional>

namespace halograd::comm {
namespace {

template <typename T>
class HostSum final : public SumReduction<T>::Implementation {
public:
  HostSum(const Communicator& communicator, std::int64_t usual_count)
      : usual_count_(std::max<std::int64_t>(1, usual_count)) {
    if (communicator.size() == 1) return;
    shared_ = SharedSum<T>::make(communicator, usual_count_);
    if (!shared_) mpi_.emplace(communicator, usual_count_);
  }

  void run(T* values, std::int64_t count, bool contributes) override {
    if (!shared_ && !mpi_) {
      if (!contributes) std::fill_n(values, count, T{0});
      return;
    }
    for (std::int64_t at = 0; at < count; at += usual_count_) {
      const std::int64_t piece = std::min(usual_count_, count - at);
      shared_ ? shared_->run(values + at, piece, contributes) : mpi_->run(values + at, piece, contributes);
    }
  }

private:
  std::int64_t usual_count_;
  std::optional<SharedSum<T>> shared_;  // neither: one rank alone
  std::optional<MpiSum<T>> mpi_;
};

}  // namespace

template <typename T>
SumPath<T> make_host_sum(const Communicator& communicator, std::int64_t usual_count) {
  return std::make_unique<HostSum<T>>(communicator, usual_count);
}

template SumPath<float> make_host_sum<float>(const Communicator&, std::int64_t);
template SumPath<double> make_host_sum<double>(const Communicator&, std::int64_t);

}  // namespace halograd::comm
