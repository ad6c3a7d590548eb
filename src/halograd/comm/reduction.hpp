#pragma once

#include "halograd/comm/communicator.hpp"

#include <memory>

namespace halograd {

/// A standing sum over the ranks of a communicator of vectors, in pieces, through shared memory where all ranks sit on
/// one node. Adds in rank order, so that the result has the same bits on every rank and in every
/// run. Does not allocate after it was made.
template <typename T>  // float or double
class SumReduction {
public:
  /// Collective. Vectors longer than `usual_count` are summed in several runs.
  SumReduction(const Communicator& communicator, std::int64_t usual_count);
  ~SumReduction();
  SumReduction(SumReduction&&) noexcept;
  SumReduction& operator=(SumReduction&&) noexcept;

  /// Collective. values: [count], replaced by their sums. A rank that does not contribute (a replica whose share is
  /// counted elsewhere) passes contributes = false: its values count as zero and are replaced all the same.
  void run(T* values, std::int64_t count, bool contributes = true);

private:
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

extern template class SumReduction<float>;
extern template class SumReduction<double>;

}  // namespace halograd
