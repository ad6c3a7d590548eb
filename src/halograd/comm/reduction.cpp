#include "halograd/comm/reduction.hpp"

#include "halograd/comm/mpi_sum.hpp"
#include "halograd/comm/shared_sum.hpp"
#include "halograd/core/error.hpp"

#include <algorithm>
#include <optional>

namespace halograd {

template <typename T>
struct SumReduction<T>::Implementation {
  std::int64_t largest_count = 0;
  std::optional<comm::SharedSum<T>> shared;  // neither: one rank alone
  std::optional<comm::MpiSum<T>> mpi;
};

template <typename T>
SumReduction<T>::SumReduction(const Communicator& communicator, std::int64_t largest_count)
    : implementation_(std::make_unique<Implementation>()) {
  auto& self = *implementation_;
  self.largest_count = largest_count;
  if (communicator.size() == 1) return;
  self.shared = comm::SharedSum<T>::make(communicator, largest_count);
  if (!self.shared) self.mpi.emplace(communicator, largest_count);
}

template <typename T>
SumReduction<T>::~SumReduction() = default;
template <typename T>
SumReduction<T>::SumReduction(SumReduction&&) noexcept = default;
template <typename T>
SumReduction<T>& SumReduction<T>::operator=(SumReduction&&) noexcept = default;

template <typename T>
void SumReduction<T>::run(T* values, std::int64_t count, bool contributes) {
  auto& self = *implementation_;
  if (count < 0 || count > self.largest_count) {
    throw UsageError("reduction of {} values, made for at most {}", count, self.largest_count);
  }
  if (count == 0) return;
  if (self.shared)
    self.shared->run(values, count, contributes);
  else if (self.mpi)
    self.mpi->run(values, count, contributes);
  else if (!contributes)
    std::fill_n(values, count, T{0});
}

template class SumReduction<float>;
template class SumReduction<double>;

}  // namespace halograd
