#include "halograd/comm/reduction.hpp"

#include "halograd/comm/reduction_paths.hpp"

namespace halograd {
namespace {

template <typename T>
comm::SumPath<T> make(const Link& link, std::int64_t usual_count) {
  if (link.transport == Transport::host) return comm::make_host_sum<T>(link.communicator, usual_count);
  if (link.transport == Transport::nccl || link.communicator.size() == 1) return comm::make_queue_sum<T>(link);
  return comm::make_staged_sum<T>(link, usual_count);
}

}  // namespace

template <typename T>
SumReduction<T>::SumReduction(const Link& link, std::int64_t usual_count)
    : implementation_(make<T>(link, usual_count)) {}
template <typename T>
SumReduction<T>::~SumReduction() = default;
template <typename T>
SumReduction<T>::SumReduction(SumReduction&&) noexcept = default;
template <typename T>
SumReduction<T>& SumReduction<T>::operator=(SumReduction&&) noexcept = default;

template <typename T>
void SumReduction<T>::run(T* values, std::int64_t count, bool contributes) {
  implementation_->run(values, count, contributes);
}

template class SumReduction<float>;
template class SumReduction<double>;

}  // namespace halograd
