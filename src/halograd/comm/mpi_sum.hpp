#pragma once

#include "halograd/comm/mpi_support.hpp"
#include "halograd/comm/shared_memory.hpp"

#include <vector>

namespace halograd::comm {

/// The sum of SumReduction by MPI messages: short vectors are gathered everywhere and summed by each rank; long ones go
/// in blocks of a slice a rank, which sums its slice and sends it to all. Both add in rank order.
template <typename T>
class MpiSum {
public:
  /// Collective.
  MpiSum(const Communicator& communicator, std::int64_t largest_count);

  void run(T* values, std::int64_t count, bool contributes);

private:
  void run_small(T* values, std::int64_t count, bool contributes);
  void run_block(T* values, std::int64_t count, bool contributes);
  void wait_for_all();

  Communicator communicator_;
  int tag_ = 0;
  std::int64_t small_ = 0;  // longest vector that is gathered
  std::int64_t slice_ = 0;  // elements a rank and block
  PrivateBuffer staging_;   // one part a rank, then one more
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
};

}  // namespace halograd::comm
