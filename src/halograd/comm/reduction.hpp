#pragma once

#include "halograd/comm/link.hpp"

#include <memory>

namespace halograd {

/// A standing sum over the ranks of a communicator of vectors, in pieces, through shared memory where all ranks sit on
/// one node. Adds in rank order, so that the result has the same bits on every rank and in every run; NCCL adds in an
/// order of its own, with the same bits on every rank. Does not allocate after it was made.
template <typename T>  // float or double
class SumReduction {
public:
  /// Collective. Vectors longer than `usual_count` are summed in several runs.
  SumReduction(const Link& link, std::int64_t usual_count);
  ~SumReduction();
  SumReduction(SumReduction&&) noexcept;
  SumReduction& operator=(SumReduction&&) noexcept;

  /// Collective. values: [count], replaced by their sums. A rank that does not contribute (a replica whose share is
  /// counted elsewhere) passes contributes = false: its values count as zero and are replaced all the same. On a GPU
  /// `values` are in its memory, and the run is in the order of the link's queue, as Exchange::run.
  void run(T* values, std::int64_t count, bool contributes = true);

  struct Implementation;

private:
  std::unique_ptr<Implementation> implementation_;
};

extern template class SumReduction<float>;
extern template class SumReduction<double>;

}  // namespace halograd
