#pragma once

#include "halograd/comm/communicator.hpp"
#include "halograd/comm/shared_memory.hpp"

#include <array>
#include <optional>
#include <vector>

namespace halograd::comm {

/// The sum of SumReduction through one shared segment that all ranks of a node map. A vector goes through in pieces
/// that stay in cache: each rank copies its piece in, sums its slice of everybody's, and copies the whole result out.
template <typename T>
class SharedSum {
public:
  /// Collective. Nothing where shared memory is off, not had on any rank, or the ranks are not on one node.
  static std::optional<SharedSum> make(const Communicator& communicator, std::int64_t largest_count);

  void run(T* values, std::int64_t count, bool contributes);

private:
  struct Control;
  SharedSum(const Communicator& communicator, SharedSegment segment, std::int64_t piece);
  static std::int64_t segment_bytes(int ranks, std::int64_t piece);
  void copy_in(const T* values, std::int64_t count, bool contributes);
  void sum(std::int64_t begin, std::int64_t end, T* out);
  void run_small(T* values, std::int64_t count, bool contributes);
  void run_pieces(T* values, std::int64_t count, bool contributes);
  void barrier();

  int rank_ = 0;
  int ranks_ = 1;
  bool spin_ = false;
  std::int64_t piece_ = 0;  // elements
  std::int64_t turn_ = 0;   // pieces so far; areas alternate with it
  SharedSegment segment_;
  Control* control_ = nullptr;
  std::array<std::vector<T*>, 2> areas_;  // [turn % 2][rank]
  std::array<T*, 2> results_{};           // [turn % 2]
  std::vector<const T*> parts_;           // contributors' areas of this turn, in rank order
};

}  // namespace halograd::comm
