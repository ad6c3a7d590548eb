#include "halograd/comm/reduction.hpp"

#include "halograd/comm/mpi_sum.hpp"
#include "halograd/comm/shared_sum.hpp"

#include <algorithm>
#include <optional>

namespace halograd {

template <typename T>
struct SumReduction<T>::Implementation {
  std::int64_t usual_count = 0;
  std::optional<comm::SharedSum<T>> shared;  // neither: one rank alone
  std::optional<comm::MpiSum<T>> mpi;
};

template <typename T>
SumReduction<T>::SumReduction(const Communicator& communicator, std::int64_t usual_count)
    : implementation_(std::make_unique<Implementation>()) {
  auto& self = *implementation_;
  self.usual_count = std::max<std::int64_t>(1, usual_count);
  if (communicator.size() == 1) return;
  self.shared = comm::SharedSum<T>::make(communicator, self.usual_count);
  if (!self.shared) self.mpi.emplace(communicator, self.usual_count);
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
  if (!self.shared && !self.mpi) {
    if (!contributes) std::fill_n(values, count, T{0});
    return;
  }
  for (std::int64_t at = 0; at < count; at += self.usual_count) {
    const std::int64_t piece = std::min(self.usual_count, count - at);
    self.shared ? self.shared->run(values + at, piece, contributes) : self.mpi->run(values + at, piece, contributes);
  }
}

template class SumReduction<float>;
template class SumReduction<double>;

}  // namespace halograd
