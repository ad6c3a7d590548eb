#pragma once

#include "halograd/comm/transfers.hpp"
#include "halograd/data/hyperslab_reader.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace halograd {

/// Reads a sample with all ranks of a spatial group, each ending up with its own box: as a ReadPlan says each reads
/// some part, and what others own is passed on. Used from one thread.
class GroupReader {
public:
  /// Collective over `group`, of which it takes a duplicate for its own traffic. `sample`: the shape of a sample.
  /// `owned`: each rank's box, in rank order; together they are the sample, once.
  GroupReader(const Communicator& group, const GlobalShape& sample, std::vector<Box> owned);
  ~GroupReader();
  GroupReader(const GroupReader&) = delete;
  GroupReader& operator=(const GroupReader&) = delete;

  /// Collective over the group, all with the same place and plan. Reads this rank's own box into `to`, dense. Throws
  /// what reading threw on this rank, after it has played its part in passing on; then the others' buffers hold
  /// nothing of use, and it is for the caller to agree on the failure.
  void read(const SamplePlace& place, const ReadPlan& plan, std::byte* to);

  /// Collective over the group, in the same order on all ranks. Rank r holds `held[r]` of a sample, this one in `from`,
  /// and gets `wanted[r]` of it into `to`; the held boxes together are the sample, once. Throws ResourceError.
  void redistribute(const SampleLayout& layout, const std::vector<Box>& held, const std::byte* from,
                    const std::vector<Box>& wanted, std::byte* to);

  [[nodiscard]] std::int64_t bytes_read() const;  ///< from files, as HyperslabReader counts
  [[nodiscard]] std::int64_t bytes_passed_on() const { return transfers_.bytes_sent(); }
  [[nodiscard]] const Communicator& group() const { return transfers_.communicator(); }
  [[nodiscard]] const GlobalShape& sample() const { return sample_; }
  [[nodiscard]] const std::vector<Box>& owned() const { return owned_; }
  [[nodiscard]] const Box& own() const { return owned_[static_cast<std::size_t>(group().rank())]; }

private:
  HyperslabReader& reader(ReadDriver driver);

  GlobalShape sample_;
  std::vector<Box> owned_;
  Transfers transfers_;
  std::vector<HyperslabReader> readers_;  // one a driver, made when first used
  std::vector<std::byte> block_;          // what this rank read
  std::vector<std::byte> messages_;       // what it sends, then what it receives, peer after peer
};

}  // namespace halograd
